package batchtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// brokenVariable enables the tests that must fail.
const brokenVariable = "SURFIN_BATCHTEST_BROKEN"

// fails runs a test of this binary that must fail, and returns its output.
func fails(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), brokenVariable+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "the test must fail, but: %v\n%s", err, out)
	require.Equal(t, 1, exit.ExitCode(), "%s", out)
	return string(out)
}

func onlyIfAsked(t *testing.T) {
	t.Helper()
	if os.Getenv(brokenVariable) == "" {
		t.Skip("it must fail, and another test runs it to see that it does")
	}
}

type person struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type careless struct{ path string }

type carelessConfig struct {
	Path string `key:"path" main:"true"`
}

func newCareless(c carelessConfig) *careless { return &careless{c.Path} }

func (w *careless) Write(_ context.Context, items []person) error {
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, p := range items {
		fmt.Fprintf(&lines, "%d\n", p.ID)
	}
	_, err = f.WriteString(lines.String())
	return errors.Join(err, f.Close())
}

const carelessJob = `
job: careless
parameters: {dir: {type: path}}
flow:
- step: load
  chunk:
    size: 2
    reader: {csv: {path: "${params.dir}/in.csv", item: person}}
    writer: {careless: "${params.dir}/out.txt"}
`

func TestBrokenCarelessWriter(t *testing.T) {
	onlyIfAsked(t)
	batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("careless.yaml")
		c.Params = []string{"dir=" + c.Dir()}
		c.Options = append(c.Options, batch.Item[person]("person"), batch.Writer[person]("careless", newCareless))
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("careless.yaml", carelessJob)
			e.File("in.csv", "id,name\n1,a\n2,b\n3,c\n")
		}
	})
}

func TestAWriterThatWritesTwiceIsFoundWhereItDoesSo(t *testing.T) {
	t.Parallel()
	out := fails(t, "TestBrokenCarelessWriter")
	require.Contains(t, out, "--- PASS: TestBrokenCarelessWriter/undisturbed")
	require.Contains(t, out, "--- PASS: TestBrokenCarelessWriter/killed/after_commit_4")  // after the first chunk
	require.Contains(t, out, "--- FAIL: TestBrokenCarelessWriter/killed/before_commit_4") // its rows are in the file
	require.Contains(t, out, "file out.txt differs from that of the undisturbed run")
	require.Contains(t, out, "too much: 3: 1")
	require.NotContains(t, out, "table ")
}

func TestBrokenJobThatNeverCompletes(t *testing.T) {
	onlyIfAsked(t)
	batchtest.CrashEverywhere(t, func(c *batchtest.Crash) {
		c.Job = c.Path("careless.yaml")
		c.Params = []string{"dir=" + c.Dir()}
		c.Options = append(c.Options, batch.Item[person]("person"), batch.Writer[person]("careless", newCareless))
		c.Faults = []batchtest.Fault{{Phase: core.PhaseWrite, Match: idIs(3), Err: errors.New("no room for three")}}
		c.Setup = func(_ *testing.T, e *batchtest.Env) {
			e.File("careless.yaml", carelessJob)
			e.File("in.csv", "id,name\n1,a\n2,b\n3,c\n")
		}
	})
}

func TestAJobThatDoesNotCompleteUndisturbedIsNotKilledAtAll(t *testing.T) {
	t.Parallel()
	out := fails(t, "TestBrokenJobThatNeverCompletes")
	require.Contains(t, out, "the job did not complete")
	require.Contains(t, out, "no room for three")
	require.NotContains(t, out, "before_commit")
}

func TestBrokenFaultThatNeverFires(t *testing.T) {
	onlyIfAsked(t)
	e := batchtest.New(t, batchtest.WithFaults(batchtest.Fault{Step: "lode", Phase: core.PhaseRead, Err: errors.New("never")}))
	sink := &batchtest.Sink[int]{}
	batchtest.Step(e, chunkOf("load", 2), batchtest.Components[int, int]{Reader: batchtest.Slice(1, 2), Writer: sink}).Completed()
}

func TestAFaultThatNeverFiresFailsItsTest(t *testing.T) {
	t.Parallel()
	require.Contains(t, fails(t, "TestBrokenFaultThatNeverFires"), "read in step lode: never")
}

func TestBrokenExpectations(t *testing.T) {
	onlyIfAsked(t)
	e := batchtest.New(t)
	sink := &batchtest.Sink[int]{}
	r := batchtest.Step(e, chunkOf("load", 2), batchtest.Components[int, int]{Reader: batchtest.Slice(1, 2), Writer: sink})
	batchtest.Has(t, sink, 1, 3)
	r.Counters("load", core.Counters{Read: 3})
	e.HasRows("select 1 union all select 2", "1", "3")
	r.Failed("")
}

func TestWrongExpectationsAreReportedWithWhatIsThere(t *testing.T) {
	t.Parallel()
	out := fails(t, "TestBrokenExpectations")
	for _, want := range []string{"[1 2]", "Read:2", "too much: 2", "missing:  3", "should be FAILED", "step load: COMPLETED"} {
		require.Contains(t, out, want)
	}
}
