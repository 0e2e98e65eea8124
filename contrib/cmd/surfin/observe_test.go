package main

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	stdslog "log/slog"

	"github.com/surfin-batch/surfin/internal/testtree"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/otel"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

var (
	block  = regexp.MustCompile("(?ms)^```(sh|yaml|go)\n(.*?)^```$")
	inFile = regexp.MustCompile(`\A# ([a-z.]+)\n`)
)

func TestTheGuideToObservationIsRight(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the guide scrapes with curl, which is not here")
	}
	dir := t.TempDir()
	out, err := testtree.Command(t.Context(), "go", "build", "-o", filepath.Join(dir, "bin", "surfin"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	r := newReceiver(t)
	script := "set -e\n"
	for _, b := range blocks(t) {
		switch b[1] {
		case "yaml":
			name := inFile.FindStringSubmatch(b[2])
			require.NotNil(t, name, b[2])
			script += "cat > " + name[1] + " <<'EOF'\n" + b[2] + "EOF\n"
		case "sh":
			script += b[2]
		}
	}
	script = strings.NewReplacer("http://localhost:4318", r.URL, "localhost:9464", freeAddress(t)).Replace(script)
	cmd := testtree.Command(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", script, said)

	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(data)
	}
	require.Contains(t, string(said), `"read":3,"written":3,"skipped":1`)
	require.Contains(t, string(said), `surfin_items_read_total{job_name="numbers",step="load"} 6`, "two runs add up")
	require.Contains(t, read("textfile/surfin.prom"), `surfin_items_read_total{job_name="numbers",step="load"} 18`, "and those that came after")
	require.Contains(t, read("scraped.txt"), `surfin_jobs_running{job_name="numbers"} 1`)
	require.Equal(t, 3, r.jobs)
	require.Contains(t, r.traces, "0af7651916cd43dd8448eb211c80319c")
}

func TestNothingIsObservedWithoutSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.yaml"), []byte("job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
	s, err := settings.Load(settings.Source{Dir: dir})
	require.NoError(t, err)
	app, err := batch.New(t.Context(), s, slog.Module(), prometheus.Module(), otel.Module())
	require.NoError(t, err)
	_, err = app.Run(t.Context(), batch.RunRequest{File: filepath.Join(dir, "job.yaml")})
	require.NoError(t, err)
	require.NoError(t, app.Close(t.Context()))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.True(t, e.Name() == "job.yaml" || strings.HasPrefix(e.Name(), "surfin.db"), e.Name())
	}
}

// What follows between the lines is shown by the guide.
func observed(ctx context.Context, settings batch.Settings, registry *client.Registry, tracerProvider *sdk.TracerProvider, logger *stdslog.Logger) (*batch.App, error) {
	metrics := prometheus.New()
	registry.MustRegister(metrics)
	app, err := batch.New(ctx, settings,
		batch.Observe(metrics),
		batch.Observe(otel.New(tracerProvider, otel.Options{Chunks: otel.DefaultChunks})),
		batch.Log(logger),
	)
	return app, err
}

func TestTheCodeOfTheGuideIsCompiled(t *testing.T) {
	t.Parallel()
	var sources string
	for _, name := range []string{"main.go", "observe_test.go"} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		sources += string(data)
	}
	for _, b := range blocks(t) {
		if b[1] != "go" {
			continue
		}
		indented := strings.TrimRight("\t"+strings.ReplaceAll(b[2], "\n", "\n\t"), "\t")
		require.True(t, strings.Contains(sources, b[2]) || strings.Contains(sources, indented), "nowhere compiled:\n%s", b[2])
	}
	s := batch.Settings{Databases: map[string]settings.Database{tx.Default: {URL: "sqlite:" + filepath.Join(t.TempDir(), "x.db")}},
		Repository: settings.Repository{Database: tx.Default}}
	app, err := observed(t.Context(), s, client.NewRegistry(), sdk.NewTracerProvider(), stdslog.New(stdslog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, app.Close(t.Context()))
}

func blocks(t *testing.T) [][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "howto", "observability.md"))
	require.NoError(t, err)
	all := block.FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, all)
	return all
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	jobs   int
	traces []string
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		data, err := io.ReadAll(req.Body)
		var message collector.ExportTraceServiceRequest
		if err != nil || proto.Unmarshal(data, &message) != nil {
			t.Error("not OTLP:", err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, of := range message.GetResourceSpans() {
			for _, scope := range of.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					if strings.HasPrefix(s.GetName(), "job ") {
						r.jobs++
					}
					r.traces = append(r.traces, hex.EncodeToString(s.GetTraceId()))
				}
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}
