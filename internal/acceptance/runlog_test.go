package acceptance

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testproxy"
)

// The step prints until there is a file.
const printsJob = `
job: prints
flow:
- step: print
  tasklet:
    shell:
      script: |
        n=0
        while [ ! -e stop ]; do n=$((n+1)); echo "line $n."; sleep 0.05; done
        echo "the end"
`

// Rules LG4 and LG5.
func TestTheLogOfAKilledProcessHasWhatItWroteAndIsFollowed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"prints.yaml": printsJob})
		p := s.start("run", "prints.yaml")
		p.await("step=print")
		follow := s.start("log", "1", "--follow")
		follow.await("line 20.")
		require.Contains(t, follow.out.String(), "line 20.", "it is followed while the process prints")
		p.signal(syscall.SIGKILL)
		code, out := p.wait()
		require.Equal(t, -1, code, out)
		code, out = s.run("log", "1")
		require.Zero(t, code, out)
		require.Contains(t, out, "line 20.")
		require.Contains(t, out, "job started")
		require.NotContains(t, out, "job ended")
		require.False(t, follow.waitFor(time.Second), "the execution is not over")

		s.write("stop", "")
		code, out = s.run("run", "prints.yaml")
		require.Zero(t, code, out)
		code, out = follow.wait()
		require.Zero(t, code, out)
		require.NotContains(t, out, "the end", "every attempt has its own")
		code, out = s.run("log", "2", "--step", "print", "--level", "info", "--text", "THE END")
		require.Zero(t, code, out)
		require.Equal(t, 1, strings.Count(out, "\n"), out)
		code, out = s.run("log", "2", "--attempt", "1", "--last", "1", "--format", "json")
		require.Zero(t, code, out)
		require.Contains(t, out, `"event":"output"`)
		code, out = s.run("log", "2", "--attempt", "3")
		require.Equal(t, 1, code, out)
		require.Contains(t, out, "has no such attempt")
		code, out = s.run("log", "7")
		require.NotZero(t, code, out)
	})
}

// Rule LG5.
func TestFollowingALogWaitsOutADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	url := testdb.Postgres(t)
	s := newScene(t, url, map[string]string{"prints.yaml": printsJob})
	p := s.start("run", "prints.yaml")
	p.await("step=print")
	proxy := testproxy.New(t, url)
	s.url = proxy.URL()
	follow := s.start("log", "1", "--follow")
	follow.await("line 5.")
	proxy.Cut()
	time.Sleep(3 * time.Second)
	require.False(t, follow.waitFor(0), follow.out.String())
	proxy.Heal()
	s.write("stop", "")
	code, out := p.wait()
	require.Zero(t, code, out)
	code, out = follow.wait()
	require.Zero(t, code, out)
	require.Contains(t, out, "job ended")
	for n := 1; strings.Contains(out, fmt.Sprintf("line %d.", n+1)); n++ {
		require.Equal(t, 1, strings.Count(out, fmt.Sprintf("line %d.", n)), "each line once")
	}
	require.Contains(t, out, "the end")
}

// Rule LG1.
func TestWorkersWriteTheLinesOfTheirPartsToTheLogOfTheExecution(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		t.Parallel()
		s := newScene(t, url, map[string]string{"parts.yaml": `
job: parts
flow:
- step: talk
  partition: {by: {count: 8}, remote: true}
  tasklet: {shell: {script: "echo part; sleep 0.5"}}
`})
		code, out := s.run("migrate")
		require.Zero(t, code, out)
		for range 2 {
			s.start("worker", "--slots", "2").await("waiting for work")
		}
		code, out = s.run("run", "parts.yaml")
		require.Zero(t, code, out)
		db, _ := s.open()
		require.Eventually(t, func() bool {
			counts := s.ints(db, "select count(*), count(distinct part), count(distinct process) from surfin_log_line where event = 'output'", 3)
			return counts[0] == 8 && counts[1] == 8 && counts[2] == 2
		}, 20*time.Second, 100*time.Millisecond)
		code, out = s.run("log", "1")
		require.Zero(t, code, out)
		require.Equal(t, 8, strings.Count(out, " part stream=stdout"), out)
	})
}
