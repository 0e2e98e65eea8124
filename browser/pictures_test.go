package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

// The pictures of README and docs, by `make screenshots`.
func TestThePicturesOfTheDocs(t *testing.T) {
	if os.Getenv("SURFIN_SCREENSHOTS") == "" {
		t.Skip("make screenshots writes them")
	}
	const dir = "/tmp/batch" // pages show it
	require.NoError(t, os.Mkdir(dir, 0o700))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	b := newTab(t, busy(t, dir, testdb.Postgres(t)).at, "docs")
	b.signIn(annaToken, "/")
	for name, path := range map[string]string{
		"now": "/", "failed": "/executions/6", "flow": "/executions/1", "definition": "/executions/6/definition",
		"skips": "/executions/3/skips", "jobs": "/jobs", "time-line": "/executions/1/timeline",
	} {
		const width, height = 1100, 700
		b.open(path)
		b.shape("light", 1440)
		b.do(chromedp.EmulateViewport(width, height))
		b.write(filepath.Join("..", "docs", "pictures", name+".png"), chromedp.CaptureScreenshot())
	}
}
