package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/cli"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestTopPrintsWhatRunsOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, nil)
		r := s.history()
		require.Regexp(t, `^nothing is running in `, s.run("top", "--once").out)
		require.Equal(t, "[]\n", s.run("top", "--once", "--format", "json").out)

		_, ref := launched(t, r, "two", stepsJob, time.Hour, nil)
		_, err := r.ChangeJob(context.Background(), ref, ports.JobChange{To: core.StatusStarted})
		require.NoError(t, err)
		require.Contains(t, s.run("top", "--once").out, " 1 two - 0 0 0 0 0 ? ? - ")
		_, err = r.StartStep(context.Background(), ref, ports.StepStart{Name: "one"})
		require.NoError(t, err)
		require.Contains(t, s.run("top", "--once").out, " 1 two one 0 0 0 0 0 ? ? - ")
		require.Contains(t, s.run("top", "--once").out, " STARTED process 4711 on elsewhere\n")

		launched(t, r, "late", stepsJob, time.Millisecond, nil)
		require.Contains(t, s.run("top", "--once", "--job", "late").out, " STARTING (lease expired) process 4711 on elsewhere\n")
		var records []struct {
			Execution   int
			Step, Lease string
			Owner       struct{ Host string }
		}
		require.NoError(t, json.Unmarshal([]byte(s.run("top", "--once", "--format", "json").out), &records))
		require.Len(t, records, 2)
		require.Equal(t, "expired", records[0].Lease)
		require.Equal(t, "one", records[1].Step)
		require.Equal(t, cli.ExitUsage, s.run("top", "--interval", "1ms").code)
	})
}

func TestTopWithoutATerminalIsALinePerRefreshUntilItIsLeft(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), nil)
	launched(t, s.history(), "two", stepsJob, time.Hour, nil)
	ctx, leave := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	code := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		code <- cli.Main(ctx, app(), s.words([]string{"top", "--interval", "10ms"}), strings.NewReader(""), writer, &errs)
		_ = writer.Close() //nolint:errcheck // a pipe's never fails
	}()
	lines := bufio.NewScanner(reader)
	for range 3 {
		require.True(t, lines.Scan())
		require.Regexp(t, `^\d\d:\d\d:\d\d execution 1, job two; \? done, \? left; STARTING, process 4711 on elsewhere$`, lines.Text())
	}
	leave()
	for lines.Scan() { // its output until it notices
		require.NotContains(t, lines.Text(), "\x1b")
	}
	require.Equal(t, cli.ExitCompleted, <-code)
}
