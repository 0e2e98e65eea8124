package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// shortLease is the environment of a process that loses its lease soon.
func shortLease(lease string) []string {
	return []string{"SURFIN_LEASE=" + lease, "SURFIN_HEARTBEAT=200ms"}
}

// onLine returns the scene of a process on a line to the server that can be frozen or cut.
func (s *scene) onLine() (*scene, *testproxy.Proxy) {
	s.t.Helper()
	line := testproxy.New(s.t, s.url)
	far := *s
	far.url = line.URL()
	return &far, line
}

const aloneJob = `
job: alone
flow:
- step: work
  tasklet:
    shell:
      grace: 1m
      script: |
        if [ -e log ]; then
          echo second >> log
          exec sleep 1
        fi
        trap '' TERM
        sh -c 'trap "" TERM; while :; do echo first >> log; sleep 0.05; done' &
        wait
`

func TestAShellTaskletEndsBeforeAnotherProcessBeginsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t), map[string]string{"alone.yaml": aloneJob})
	s.env = shortLease("3s")
	far, line := s.onLine()
	first := far.start("run", "alone.yaml")
	s.awaitFile("log")
	line.Freeze()
	s.takeOver([]string{"run", "alone.yaml"}, func(string) {})
	log := s.read("log")
	require.True(t, strings.HasSuffix(log, "first\nsecond\n"), log)
	code, out := first.wait()
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "the lease could not be renewed for")
	require.Contains(t, out, "its lease has expired: the next owner decides how it ended")
}

func (s *scene) awaitFile(name string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		data, err := os.ReadFile(filepath.Join(s.dir, name))
		return err == nil && len(data) > 0
	}, 20*time.Second, 10*time.Millisecond)
}

type deaf struct{}

func (deaf) Execute(context.Context, *core.StepContribution) error {
	if _, err := os.Stat("first"); err == nil {
		return nil
	}
	if err := os.WriteFile("first", []byte("begun"), 0o600); err != nil {
		return err
	}
	select {}
}

func TestAProcessWhoseComponentDoesNotReturnEndsItself(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.Postgres(t), map[string]string{"deaf.yaml": "job: deaf\nflow:\n- step: work\n  tasklet: deaf\n"})
	s.env = append(shortLease("3s"), typedApp+"=1")
	program, err := os.Executable()
	require.NoError(t, err)
	far, line := s.onLine()
	first := far.startProgram(program, "run", "deaf.yaml")
	s.awaitFile("first")
	line.Freeze()
	code, out := first.wait()
	require.Equal(t, 6, code, out)
	require.Contains(t, out, "job deaf, execution 1, step work did not return before its lease expired, so this process ends: the lease could not be renewed for")
	require.Contains(t, out, "restart 1")
	code, out = s.startProgram(program, "run", "deaf.yaml").wait()
	require.Zero(t, code, out)
}

func TestTheEndIsRecordedWhereOnlyTheHistoryWasAway(t *testing.T) {
	t.Parallel()
	data := testdb.Postgres(t)
	s := newScene(t, testdb.Postgres(t), map[string]string{
		"cross.yaml":  fmt.Sprintf(crossJob, "got", "got"),
		"surfin.yaml": fmt.Sprintf("databases:\n  data: {url: %q}\n", data),
	})
	s.env = shortLease("6s")
	provider, err := gormdb.Open(t.Context(), map[string]gormdb.Config{"data": {URL: data}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database("data")
	require.NoError(t, err)
	const rows = 40_000
	writeFaulty(t, filepath.Join(s.dir, "in.csv"), rows)
	far, line := s.onLine()
	p := far.start("run", "cross.yaml", "input=in.csv", "into=got")
	require.Eventually(t, func() bool {
		var n int64
		err := db.Conn().QueryRowContext(context.Background(), "select count(*) from got").Scan(&n)
		return err == nil && n > 0
	}, 20*time.Second, 10*time.Millisecond)
	line.Cut()
	time.Sleep(2 * time.Second)
	require.False(t, p.waitFor(0), p.out.String())
	line.Heal()
	code, out := p.wait()
	require.Zero(t, code, out)
	require.Equal(t, []int64{rows - rows/100}, s.ints(db, "select count(*) from got", 1))
	code, out = s.run("skips", "list", "1", "--format", "json")
	require.Zero(t, code, out)
	_, r := s.open()
	steps, err := r.Steps(t.Context(), 1)
	require.NoError(t, err)
	require.EqualValues(t, rows/100, steps[len(steps)-1].Counters.ReadSkip)
	require.EqualValues(t, rows-rows/100, steps[len(steps)-1].Counters.Write)
}
