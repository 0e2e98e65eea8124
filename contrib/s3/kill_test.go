package s3_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
)

// times is how often each writer is killed, and frozen: more in `make soak`.
func times(variable string, few int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return few
}

var built = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // one program for all tests of the package
	g, err := shared()
	if err != nil {
		return "", err
	}
	path := filepath.Join(g.dir, "surfin")
	out, err := testtree.Command(context.Background(), "go", "build", "-o", path, "../cmd/surfin").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w: %s", err, out)
	}
	return path, nil
})

// site is where processes run; only the database and the store are kept between them.
type site struct {
	t       *testing.T
	gateway *running
	bucket  string
	program string
	rows    int
	db      string
	job     string // instead of one that writes a file
	args    []string
	env     []string
	url     string // of the store; empty is the gateway's
	disk    string // instead of the bucket, for the file
}

const job = `job: out
flow:
- step: out
  chunk:
    size: 500
    reader: {csv: {path: '%s', item: {id: int, name: string}}}
    writer: {%s}
`

func newSite(t *testing.T, rows int, db string) *site {
	t.Helper()
	g, bucket := bucket(t)
	program, err := built()
	require.NoError(t, err)
	s := &site{t: t, gateway: g, bucket: bucket, program: program, rows: rows, db: db}
	var in strings.Builder
	in.WriteString("id,name\n")
	for i := range rows {
		fmt.Fprintf(&in, "%d,name %d\n", i, i*7919%1000)
	}
	g.put(t, bucket, "in.csv", in.String())
	return s
}

func (s *site) command(writer string) *exec.Cmd {
	dir := folder(s.t) // an empty one
	settings := fmt.Sprintf("lease: 2s\nheartbeat: 500ms\nplaces:\n  s3: {endpoint: '%s', region: us-east-1, path_style: true, access_key: '${secret.id}', secret_key: '${secret.key}'}\n", cmp.Or(s.url, s.gateway.url))
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "surfin.yaml"), []byte(settings), 0o600))
	text := s.job
	if text == "" {
		text = fmt.Sprintf(job, "s3://"+s.bucket+"/in.csv", fmt.Sprintf(writer, s.out()))
	}
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(text), 0o600))
	cmd := testtree.Command(context.Background(), s.program, append([]string{"run", "job.yaml"}, s.args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.db, "SURFIN_AUTO_MIGRATE=true", "SURFIN_SECRET_ID="+accessKey, "SURFIN_SECRET_KEY="+secretKey, "NO_COLOR=1")
	cmd.Env = append(cmd.Env, s.env...)
	return cmd
}

// end runs the job to its end.
func (s *site) end(writer string) {
	s.t.Helper()
	var out []byte
	for until := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		var err error
		if out, err = s.command(writer).CombinedOutput(); err == nil || strings.Contains(string(out), "is already complete") {
			break
		}
		require.True(s.t, time.Now().Before(until), "%s", out)
	}
	require.NotContains(s.t, string(out), secretKey)
}

func (s *site) out() string {
	if s.disk != "" {
		return filepath.Join(s.disk, "file")
	}
	return "s3://" + s.bucket + "/out/file"
}

func (s *site) result(suffix string) string {
	if s.disk == "" {
		return s.gateway.get(s.t, s.bucket, "out/file"+suffix)
	}
	text, err := os.ReadFile(s.out() + suffix)
	require.NoError(s.t, err)
	return string(text)
}

// clean expects the file only: no part, no upload.
func (s *site) clean(suffix string) {
	s.t.Helper()
	keys := []string{"in.csv", "out/file" + suffix}
	if s.disk != "" {
		left, err := os.ReadDir(s.disk)
		require.NoError(s.t, err)
		require.Len(s.t, left, 1, "parts are left")
		keys = keys[:1]
	}
	s.gateway.clean(s.t, s.bucket, keys...)
}

func writers() map[string]string {
	return map[string]string{
		".csv":       "csv: '%s.csv'",
		".csv.gz":    "csv: '%s.csv.gz'",
		".json":      "json: '%s.json'",
		".jsonl.zst": "jsonl: '%s.jsonl.zst'",
		".parquet":   "parquet: {path: '%s.parquet', group_rows: 7000}",
		".txt":       "fixed: {path: '%s.txt', columns: {id: 1-8, name: 9-20}}",
		".parts":     "fixed: {path: '%s.parts', columns: {id: 1-8, name: 9-20}, header: H, trailer: {begins: T, count: 2-8}, together: true}}\n  partition: {by: {lines: 4}, workers: 2} #",
	}
}

func TestKilledAtAnyMomentAFileIsAsIfNothingHadHappened(t *testing.T) {
	t.Parallel()
	for suffix, writer := range writers() {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			killedAnywhere(t, suffix, writer, "")
		})
	}
	t.Run(".parquet on a disk", func(t *testing.T) {
		t.Parallel()
		killedAnywhere(t, ".parquet", writers()[".parquet"], folder(t))
	})
}

func killedAnywhere(t *testing.T, suffix, writer, disk string) {
	whole := newSite(t, 60_000, testdb.EmptySQLite(t))
	whole.disk = disk
	began := time.Now()
	whole.end(writer)
	took := time.Since(began)
	want := whole.result(suffix)
	require.NotEmpty(t, want)
	for range times("KILLS", 3) {
		s := newSite(t, 60_000, testdb.EmptySQLite(t))
		if disk != "" {
			s.disk = folder(t)
		}
		cmd := s.command(writer)
		require.NoError(t, cmd.Start())
		time.Sleep(rand.N(took)) //nolint:gosec // any moment
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait() //nolint:errcheck // it was killed
		s.end(writer)
		require.True(t, s.result(suffix) == want, "the file differs")
		s.clean(suffix)
		s.gateway.clear(t, s.bucket)
	}
	whole.gateway.clear(t, whole.bucket)
}

func TestFrozenAtAnyMomentAnAttemptChangesNothingWhenItWakes(t *testing.T) {
	t.Parallel()
	frozen := writers()
	if os.Getenv("FROZEN") == "" {
		frozen = map[string]string{".csv": frozen[".csv"], ".parquet": frozen[".parquet"], ".parts": frozen[".parts"]}
	}
	for suffix, writer := range frozen {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			frozenAnywhere(t, suffix, writer)
		})
	}
}

func frozenAnywhere(t *testing.T, suffix, writer string) {
	t.Helper()
	whole := newSite(t, 60_000, testdb.Postgres(t))
	began := time.Now()
	whole.end(writer)
	took := time.Since(began)
	want := whole.result(suffix)
	whole.gateway.clear(t, whole.bucket)
	for range times("FROZEN", 2) {
		s := newSite(t, 60_000, testdb.Postgres(t)) // one that is frozen while it migrates holds the lock of migrations
		frozen := s.command(writer)
		require.NoError(t, frozen.Start())
		time.Sleep(rand.N(took)) //nolint:gosec // any moment
		require.NoError(t, frozen.Process.Signal(syscall.SIGSTOP))
		time.Sleep(3 * time.Second) // longer than its lease
		s.end(writer)
		require.NoError(t, frozen.Process.Signal(syscall.SIGCONT))
		frozen.Wait() //nolint:errcheck // it has lost, or had ended
		require.True(t, s.result(suffix) == want, "the file differs")
		s.clean(suffix)
		s.gateway.clear(t, s.bucket)
	}
}
