package acceptance

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
)

const cookbook = "jobs/cookbook"

const serverOfPages = "http://localhost:8000"

func TestThePagesOfTheCookbookDoWhatTheySay(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "docs", "cookbook", "*.md"))
	require.NoError(t, err)
	for _, file := range files {
		if name := filepath.Base(file); name == "README.md" || name == "lake.md" { // contrib/s3 runs the job of lake.md
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testdb.SQLite(t), nil)
			page := blocks(t, "../cookbook/"+filepath.Base(file))
			s.servePage(page)
			s.followPage(page)
		})
	}
}

func (s *scene) servePage(page []block) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.FileServer(http.Dir(s.dir)).ServeHTTP(w, r)
		}
	}))
	s.t.Cleanup(server.Close)
	for i := range page {
		page[i].text = strings.ReplaceAll(page[i].text, serverOfPages, server.URL)
	}
}

func TestEveryJobOfTheCookbookIsOnAPage(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "cookbook", "*.md"))
	require.NoError(t, err)
	all, list := "", ""
	for _, file := range pages {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if filepath.Base(file) == "README.md" {
			list = string(text)
		}
		all += string(text)
	}
	for _, file := range pages {
		if name := filepath.Base(file); name != "README.md" {
			require.Contains(t, list, "("+name+")")
		}
	}
	jobs, err := filepath.Glob(filepath.Join("..", "..", cookbook, "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, jobs)
	for _, file := range jobs {
		require.Contains(t, all, "<!-- is "+cookbook+"/"+filepath.Base(file)+" -->")
	}
}
