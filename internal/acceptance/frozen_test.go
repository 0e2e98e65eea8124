package acceptance

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testkit/itemkit"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

const exportJob = `
job: export
parameters:
  to: {type: path}
flow:
- step: out
  chunk:
    size: 100
    reader: {query: {sql: "select id, name, amount from src", key: [id]}}
    writer: {%s: "${params.to}%s"}
    retry: {limit: 3}
`

const exportPartsJob = `
job: export
parameters:
  to: {type: path}
flow:
- step: out
  partition: {by: {range: {table: src, key: id, parts: 3}}, workers: 2}
  chunk:
    size: 100
    reader: {query: {sql: "select id, name, amount from src where id between ${part.min} and ${part.max}", key: [id]}}
    writer: {%s: "${params.to}-${part.index}%s"}
    retry: {limit: 3}
`

const exportAppendJob = `
job: export
parameters:
  to: {type: path}
flow:
- step: out
  chunk:
    size: 100
    reader: {query: {sql: "select id, name, amount from src", key: [id]}}
    writer: {%s: {path: "${params.to}%s", append: true}}
    retry: {limit: 3}
`

type kind struct{ job, writer, suffix string }

func kinds() (list []kind) {
	for _, job := range []string{exportJob, exportPartsJob} {
		for _, k := range [][2]string{{"csv", ".csv"}, {"csv", ".csv.gz"}, {"csv", ".csv.zst"}, {"jsonl", ".jsonl"}, {"json", ".json"}} {
			list = append(list, kind{job, k[0], k[1]})
		}
	}
	for _, k := range [][2]string{{"csv", ".csv"}, {"csv", ".csv.gz"}, {"jsonl", ".jsonl.zst"}} {
		list = append(list, kind{exportAppendJob, k[0], k[1]})
	}
	for _, k := range [][2]string{{"csv", ".csv"}, {"jsonl", ".jsonl.gz"}} {
		job := strings.Replace(exportPartsJob, `"${params.to}-${part.index}%s"`, `{path: "${params.to}%s", together: true}`, 1)
		list = append(list, kind{job, k[0], k[1]})
	}
	return list
}

// Rules C15b and C15w.
func TestAnOutputFileIsItsLastOwnersThoughFrozenOnesWake(t *testing.T) {
	t.Parallel()
	exportFrozen(t, testdb.Postgres(t), len(kinds()))
}

// Rules C15b and MY2.
func TestAnOutputFileIsItsLastOwnersWithAHistoryOnMariaDB(t *testing.T) {
	t.Parallel()
	exportFrozen(t, testdb.MySQL(t), 3)
}

func exportFrozen(t *testing.T, server string, times int) {
	t.Helper()
	prepareExport(t, server)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	slots := make(chan struct{}, 4)
	var wait sync.WaitGroup
	defer wait.Wait()
	for i := range envInt(t, "SURFIN_FROZEN", times) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			k := kinds()[i%len(kinds())]
			f := newFrozen(t, server, k, rand.New(rand.NewPCG(seed, uint64(i))))
			f.undisturbed()
			f.disturbed()
			f.assertEqual()
		})
	}
}

func prepareExport(t *testing.T, url string) {
	t.Helper()
	s := newScene(t, url, nil)
	code, out := s.run("migrate")
	require.Zero(t, code, out)
	db, _ := s.open()
	for _, text := range []string{
		"create table src(id bigint primary key, name text, amount numeric(12, 2))",
		"insert into src with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) select i, 'name ' || i, i * 0.25 from n",
	} {
		_, err := db.Conn().ExecContext(context.Background(), text)
		require.NoError(t, err)
	}
}

type frozen struct {
	*scene
	random *rand.Rand
	slow   string // the URL of the proxy
	out    string // the folder of the files
	took   time.Duration
	want   map[string][]byte
}

func newFrozen(t *testing.T, server string, k kind, random *rand.Rand) *frozen {
	t.Helper()
	s := newScene(t, server, map[string]string{"export.yaml": fmt.Sprintf(k.job, k.writer, k.suffix)})
	s.env = []string{"SURFIN_LEASE=1s", "SURFIN_HEARTBEAT=100ms"}
	line := testproxy.New(t, server)
	line.Slow(2 * time.Millisecond)
	f := &frozen{scene: s, random: random, out: t.TempDir(), slow: line.URL(), want: map[string][]byte{}}
	if k.job == exportAppendJob {
		f.lay(k)
	}
	return f
}

func (f *frozen) lay(k kind) {
	text := []byte(`{"id":0,"name":"before"}`)
	if k.writer == "csv" {
		text = []byte("id,name,amount\n0,before,0")
	}
	switch {
	case strings.HasSuffix(k.suffix, ".gz"):
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write(text)
		require.NoError(f.t, errors.Join(err, w.Close()))
		text = b.Bytes()
	case strings.HasSuffix(k.suffix, ".zst"):
		w, err := zstd.NewWriter(nil)
		require.NoError(f.t, err)
		text = w.EncodeAll(text, nil)
	}
	for _, name := range []string{"calm", "shaken"} {
		require.NoError(f.t, os.WriteFile(filepath.Join(f.out, name+k.suffix), text, 0o600))
	}
}

func (f *frozen) undisturbed() {
	from := time.Now()
	calm := *f
	calm.scene = &scene{t: f.t, dir: f.dir} // with a lease that a busy machine keeps
	code, out := calm.startOn(f.slow, "calm").wait()
	f.took = time.Since(from)
	require.Zero(f.t, code, out)
	for name, data := range f.files("calm") {
		f.want[name] = data
	}
	require.NotEmpty(f.t, f.want)
}

// startOn runs the export into files of that name. Their folder is outside of the job's, so that it is part
// of the instance (rule L1a): each run of the test has its own.
func (f *frozen) startOn(url, name string) *process {
	f.t.Helper()
	on := *f.scene
	on.url = url
	return on.start("run", "export.yaml", "to="+filepath.Join(f.out, name))
}

// disturbed runs the export in a process that is frozen at a random moment and
// woken at another one.
func (f *frozen) disturbed() {
	first := f.startOn(f.slow, "shaken")
	if first.waitFor(f.took/4 + time.Duration(f.random.Int64N(int64(f.took*3/4)))) {
		if code, out := first.wait(); isComplete(code, out) { // it was faster than before
			return
		} // a busy machine cost it its lease
	}
	first.signal(syscall.SIGSTOP)
	wake := time.AfterFunc(time.Second+time.Duration(f.random.Int64N(int64(2*f.took))), func() { first.signal(syscall.SIGCONT) })
	deadline := time.Now().Add(time.Minute)
	for {
		code, out := f.startOn(f.url, "shaken").wait()
		if isComplete(code, out) {
			break
		}
		require.True(f.t, time.Now().Before(deadline), out)
		time.Sleep(250 * time.Millisecond) // its lease is not over yet
	}
	if wake.Stop() {
		first.signal(syscall.SIGCONT)
	}
	code, out := first.wait()
	require.Contains(f.t, []int{0, 1, 4, 6}, code, out) // 4: it was frozen before it launched; 6: its lease was over (rule L9)
}

func (f *frozen) assertEqual() {
	require.Equal(f.t, len(f.want), len(f.files("shaken")))
	for name, data := range f.files("shaken") {
		calm := strings.Replace(name, "shaken", "calm", 1)
		require.True(f.t, bytes.Equal(f.want[calm], data), "%s differs: %d bytes, want %d", name, len(data), len(f.want[calm]))
		require.Empty(f.t, itemkit.Parts(f.t, filepath.Join(f.out, name)))
	}
}

func (f *frozen) files(prefix string) map[string][]byte {
	names, err := filepath.Glob(filepath.Join(f.out, prefix+"*"))
	require.NoError(f.t, err)
	found := map[string][]byte{}
	for _, name := range names {
		if strings.Contains(name, ".part.") {
			continue
		}
		data, err := os.ReadFile(name)
		require.NoError(f.t, err)
		found[filepath.Base(name)] = data
	}
	return found
}
