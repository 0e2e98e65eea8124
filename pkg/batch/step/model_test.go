package step_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

type modelCase struct {
	Other, NoTx          bool   // the location of its work
	Work                 string // "", "error", "stop", "panic", "unknown"
	Code                 string // its own exit code
	Key                  bool   // it puts the key to promote
	Gate                 string // "" means none; "holds", "not", "error", "panic"
	Listeners            []modelListener
	Promote              string // "" means none; "lenient", "strict"
	Statuses             []string
	Commit               string // "", "before", "after", "rolled back"
	FailsToMakeListeners bool
}

type modelListener struct {
	Fails, Panics string // "", "before", "after", "close"
	Exit          string // the listener's new exit code
}

func randomCase(r *rand.Rand) modelCase {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	c := modelCase{
		Other: r.IntN(2) == 0, NoTx: r.IntN(4) == 0,
		Work: one("", "", "", "", "", "", "", "", "", "error", "stop", "panic", "unknown"), Code: one("", "MAYBE"), Key: r.IntN(3) > 0,
		Gate: one("", "", "", "", "holds", "holds", "holds", "holds", "not", "error", "panic"), Promote: one("", "lenient", "strict"),
		Commit: one("", "", "", "before", "after", "rolled back"), FailsToMakeListeners: r.IntN(30) == 0,
	}
	if r.IntN(2) == 0 {
		c.Statuses = []string{one("*", "MAYBE", "FAILED", "DONE")}
	}
	for range r.IntN(4) {
		l := modelListener{Exit: one("", "", "DONE")}
		if r.IntN(12) == 0 {
			l.Fails = one("before", "after", "close")
		} else if r.IntN(20) == 0 {
			l.Panics = one("before", "after", "close")
		}
		c.Listeners = append(c.Listeners, l)
	}
	return c
}

type end struct {
	Status   core.Status
	Exit     string
	Row      bool // its row was written
	Stored   bool // the promoted key is in the job's context, as stored
	Promoted bool // and in the caller's view
	Log      []string
}

// predict returns the end of the case, by the rules in order: it shares only them with the executor.
func predict(c modelCase) end {
	e := end{Log: []string{}}
	fail := func(status core.Status, exit string) { e.Status, e.Exit = status, exit }
	fails := func(l modelListener, what string) bool { return l.Fails == what || l.Panics == what }
	inTx := !c.NoTx
	promotes := func() bool {
		if c.Promote == "" {
			return false
		}
		for _, pattern := range append([]string{}, append(c.Statuses, map[bool]string{true: "COMPLETED"}[len(c.Statuses) == 0])...) {
			if pattern != "" && model.MatchPattern(pattern, e.Exit) {
				return true
			}
		}
		return false
	}
	if c.FailsToMakeListeners {
		fail(core.StatusFailed, "FAILED")
		return e // there is nothing to promote
	}
	written, key := false, false
	fail(core.StatusCompleted, "COMPLETED")
	for i, l := range c.Listeners {
		e.Log = append(e.Log, fmt.Sprint(i, " before"))
		if fails(l, "before") {
			fail(core.StatusFailed, "FAILED")
			break
		}
	}
	if e.Status == core.StatusCompleted {
		written, key = true, c.Key
		own := func(otherwise string) string {
			if c.Code != "" {
				return c.Code
			}
			return otherwise
		}
		switch c.Work {
		case "":
			e.Exit = own("COMPLETED")
			switch c.Gate {
			case "not":
				fail(core.StatusFailed, "EXPECT_FAILED")
			case "error", "panic":
				fail(core.StatusFailed, "FAILED")
			}
		case "error":
			fail(core.StatusFailed, own("FAILED"))
		case "stop":
			fail(core.StatusStopped, own("STOPPED"))
		case "unknown":
			fail(core.StatusUnknown, own("UNKNOWN"))
		case "panic":
			fail(core.StatusFailed, "FAILED")
		}
	}
	worse := func() { // another error happened
		switch {
		case e.Status == core.StatusCompleted:
			fail(core.StatusFailed, "FAILED")
		case e.Status == core.StatusStopped && e.Exit == "STOPPED":
			fail(core.StatusFailed, "FAILED")
		case e.Status == core.StatusStopped:
			e.Status = core.StatusFailed
		}
	}
	promote := func() {
		switch {
		case !promotes():
		case key:
			e.Stored, e.Promoted = true, true
		case c.Promote == "strict":
			worse()
		}
	}
	for i := len(c.Listeners) - 1; i >= 0; i-- {
		l := c.Listeners[i]
		e.Log = append(e.Log, fmt.Sprintf("%d sees %s/%s", i, e.Status, e.Exit), fmt.Sprint(i, " after"))
		if fails(l, "after") {
			worse()
		} else if l.Exit != "" {
			e.Exit = l.Exit
		}
	}
	promote()
	wasCompleted := e.Status == core.StatusCompleted
	closing := false
	for i := len(c.Listeners) - 1; i >= 0; i-- {
		e.Log = append(e.Log, fmt.Sprint(i, " close"))
		closing = closing || fails(c.Listeners[i], "close")
	}
	afterwards := func() { // the effect of a failure after the promotion
		if inTx && !c.Other {
			e.Stored = false
		}
		e.Promoted = false
		promote()
	}
	if closing {
		worse()
		if wasCompleted {
			afterwards()
		}
	}
	if e.Status == core.StatusCompleted && inTx {
		switch {
		case c.Commit == "after" && c.Other, c.Commit == "before" && c.Other:
			fail(core.StatusUnknown, "UNKNOWN")
			afterwards()
		case c.Commit == "before", c.Commit == "rolled back":
			fail(core.StatusFailed, "FAILED")
			if c.Other {
				afterwards()
			} else { // only the row knew that it is a failure
				e.Stored, e.Promoted = false, false
			}
		}
		e.Row = c.Commit == "" || c.Commit == "after"
		return e
	}
	e.Row = written && !inTx || e.Status == core.StatusCompleted
	return e
}

// SURFIN_SOAK is the number of cases that a soak tries on each.
func TestAStepEndsAsTheRulesSayWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		b := newBed(t, url)
		other := another(t, testdb.SQLite(t))
		cases, each := uint64(600), uint64(1)
		if b.Database.Dialect() == tx.Postgres {
			each = 3
		}
		if testengine.Few() {
			cases = 30
		}
		if given := os.Getenv("SURFIN_SOAK"); given != "" {
			n, err := strconv.ParseUint(given, 10, 64)
			require.NoError(t, err)
			cases, each = n, 1
		}
		for seed := uint64(0); seed < cases; seed += each {
			c := randomCase(rand.New(rand.NewPCG(seed, 4)))
			b.launch(fmt.Sprint("case ", seed))
			require.Equal(t, predict(c), b.play(c, other), "seed %d: %+v", seed, c)
		}
	})
}

func (b *bed) play(c modelCase, other tx.Database) end {
	b.T.Helper()
	db := b.Database
	if c.Other {
		db = other
	}
	_, err := db.Conn().ExecContext(b.T.Context(), "delete from out")
	require.NoError(b.T, err)
	seen := end{Log: []string{}}
	run := b.run()
	record, err := b.executor.Execute(b.T.Context(), b.tasklet(c.tasklet(db), c.configure(db, &seen.Log)), run)
	require.NoError(b.T, err)
	stored := b.stored(record.ID)
	require.Equal(b.T, stored.Status, record.Status)
	require.Equal(b.T, stored.ExitCode, record.ExitCode)
	seen.Status, seen.Exit = stored.Status, stored.ExitCode
	var n int
	require.NoError(b.T, db.Conn().QueryRowContext(b.T.Context(), "select count(*) from out").Scan(&n))
	seen.Row = n > 0
	_, seen.Stored = b.context()["total"]
	_, seen.Promoted = valuesOf(run.Data.Job.Context)["total"]
	return seen
}

func (c modelCase) tasklet(db tx.Database) core.TaskletFunc {
	return func(ctx context.Context, s *core.StepContribution) error {
		if err := insertInto(ctx, db, 7); err != nil {
			return err
		}
		if c.Key {
			if err := s.Context.Put("sum", 42); err != nil {
				return err
			}
		}
		s.ExitCode = c.Code
		switch c.Work {
		case "error":
			return testengine.ErrLine
		case "stop":
			return core.ErrStopped
		case "unknown":
			return ports.ErrUnknownOutcome
		case "panic":
			panic("lost my head")
		}
		return nil
	}
}

func (c modelCase) configure(db tx.Database, log *[]string) func(*step.TaskletConfig) {
	return func(config *step.TaskletConfig) {
		config.Database = db
		if commit := map[string]func(tx.Handle) error{"before": testengine.LostBefore, "after": testengine.LostAfter, "rolled back": rolledBack}[c.Commit]; commit != nil {
			config.Database = testengine.Committing{Database: db, Commit: commit}
		}
		if c.NoTx {
			config.Attr.Propagation = tx.NotSupported
		}
		if c.Gate != "" {
			config.Expect = &model.Condition{Text: "it is well", Holds: func(context.Context, *core.View) (bool, error) {
				switch c.Gate {
				case "error":
					return false, testengine.ErrLine
				case "panic":
					panic("lost my head")
				}
				return c.Gate == "holds", nil
			}}
		}
		if c.Promote != "" {
			config.Promote = &model.Promotion{Keys: map[string]string{"sum": "total"}, Strict: c.Promote == "strict", Statuses: c.Statuses}
		}
		config.Listeners = func(context.Context, *model.StepRun) ([]any, error) {
			if c.FailsToMakeListeners {
				return nil, errors.New("no listeners today")
			}
			var list []any
			for i, l := range c.Listeners {
				told := &noted{name: fmt.Sprint(i), log: log, fail: map[string]error{l.Fails: testengine.ErrLine}, panics: l.Panics}
				if l.Exit != "" {
					told.change = func(s *core.StepExecution) { s.ExitCode = l.Exit }
				}
				list = append(list, told)
			}
			return list, nil
		}
	}
}
