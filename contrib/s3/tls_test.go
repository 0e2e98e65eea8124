package s3_test

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/testtree"
)

func TestAStoreWithACertificateOfItsOwn(t *testing.T) {
	t.Parallel()
	g, name := bucket(t)
	to, err := url.Parse(g.url)
	require.NoError(t, err)
	server := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // the signature has it
	}})
	t.Cleanup(server.Close)
	ca := filepath.Join(folder(t), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	secure := gateway{url: server.URL, ca: ca}
	found, err := place.Check(secure.in(t), "s3://"+name+"/in", true)
	require.NoError(t, err)
	for _, one := range found {
		require.Empty(t, one.Error, one.Name)
	}
	secure.ca = ""
	_, err = place.Find(secure.in(t), "s3://"+name+"/in/*")
	require.ErrorContains(t, err, "certificate")
	secure.ca = filepath.Join(folder(t), "none.pem")
	_, err = place.Find(secure.in(t), "s3://"+name+"/in/*")
	require.ErrorContains(t, err, "place s3: ca: ")
}

// The example of the reference is the settings of a place: here for another store.
func TestTheExampleOfTheReferenceIsAPlace(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "place-s3.md"))
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	g, name := bucket(t)
	settings := strings.NewReplacer("https://s3.example.com", g.url, "region: eu-central-1", "region: us-east-1, path_style: true").Replace(example)
	require.Contains(t, settings, g.url)
	dir := folder(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "surfin.yaml"), []byte(settings), 0o600))
	program, err := built()
	require.NoError(t, err)
	cmd := testtree.Command(t.Context(), program, "places", "check", "s3://"+name+"/in")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "SURFIN_SECRET_S3_ID="+accessKey, "SURFIN_SECRET_S3_KEY="+secretKey)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), name)
}

const brokenJob = `job: load
flow:
- step: load
  chunk:
    size: 10
    reader: {csv: {path: 's3://%s/in.csv', item: {id: int}}}
    writer: {table: {name: loaded, create: true}}
`

// Rule OB1: a restart refuses another content, and names both; --accept-changes continues in it.
func TestAnObjectThatWasCorrectedIsContinuedOnRequest(t *testing.T) {
	t.Parallel()
	g, name := bucket(t)
	program, err := built()
	require.NoError(t, err)
	s := &site{t: t, gateway: g, bucket: name, program: program, db: "sqlite:" + filepath.Join(folder(t), "h.db"), job: fmt.Sprintf(brokenJob, name)}
	put := func(last string) {
		text := "id\n"
		for i := range 35 {
			text += fmt.Sprintf("%d\n", 100+i)
		}
		g.put(t, name, "in.csv", text+last+"\n")
	}
	run := func(args ...string) string {
		s.args = args
		out, err := s.command("").CombinedOutput()
		if len(args) == 0 {
			require.Error(t, err)
		}
		return string(out)
	}
	put("x35")
	require.Contains(t, run(), "x35")
	put("135")
	refused := run()
	require.Contains(t, refused, "--accept-changes")
	done := run("--accept-changes")
	require.Contains(t, done, "COMPLETED")
	require.Regexp(t, `load +COMPLETED +6 `, done, "it continued after 30 rows")
}
