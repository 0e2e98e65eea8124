package cli_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/testdb"
)

func TestAProcessThatLostItsExecutionSaysSoInOneSentence(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"surfin.yaml": "lease: 2s\nheartbeat: 500ms\n", "h.yaml": "job: h\nflow:\n- {step: wait, tasklet: hang}\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		c := s.start("run", "h.yaml")
		c.until("step started")
		c.signal(syscall.SIGSTOP)
		require.Eventually(t, func() bool { return strings.Contains(s.run("recover").out, " 1 h FAILED ") }, time.Minute, 100*time.Millisecond)
		c.signal(syscall.SIGCONT)
		code, errs := c.end()
		require.Equal(t, cli.ExitFailed, code, errs)
		require.Contains(t, errs, "surfin: job h, execution 1 was taken over by another process after its lease expired; this process wrote nothing after that\n")
		require.NotContains(t, errs, "transition to")
		require.NotContains(t, errs, "allowed from")
	})
}

func TestAKeyThatIsNotPromotedIsWarnedOf(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, map[string]string{"p.yaml": "job: p\nflow:\n- step: one\n  tasklet: nothing\n  promote: {rows: total, skips: bad}\n"})
		require.Equal(t, cli.ExitCompleted, s.run("migrate").code)
		r := s.run("run", "p.yaml")
		require.Equal(t, cli.ExitCompleted, r.code, r.err)
		const warning = "promote: not found in the context of the step, which is empty: rows, skips"
		require.Contains(t, r.err, `WARN step ended step=one status=COMPLETED warning="`+warning+`"`)
		require.Contains(t, s.run("show", "1").out, warning)
	})
}
