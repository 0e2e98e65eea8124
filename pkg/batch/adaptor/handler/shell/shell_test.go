//test:plain

package shell

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func execute(ctx context.Context, payload string) (task.Outcome, error) {
	o, err := New(nil).Execute(ctx, task.Task{Spec: task.Spec{Payload: json.RawMessage(payload)}})
	return o, err
}

func TestAProcessIsRunAndItsOutputKept(t *testing.T) {
	t.Parallel()
	o, err := execute(t.Context(), `{"script": "echo $WORD; echo oops >&2", "env": {"WORD": "hello"}}`)
	require.NoError(t, err)
	require.Equal(t, task.OutcomeSuccess, o.Kind)
	require.Equal(t, []task.Artifact{task.Stdout("hello"), task.Stderr("oops"), task.JSON(json.RawMessage(`{"exit_code":0}`))}, o.Artifacts)
	o, err = execute(t.Context(), `{"command": ["sh", "-c", "echo no luck >&2; exit 3"]}`)
	require.NoError(t, err)
	require.Equal(t, task.OutcomeFailure, o.Kind)
	require.Equal(t, "exit status 3: no luck", o.Reason)
	o, err = execute(t.Context(), `{"command": ["no-such-program-here"]}`)
	require.NoError(t, err)
	require.Equal(t, task.OutcomeBlocked, o.Kind)
}

func TestAProcessEndsWithItsAttempt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(task.ErrCanceled) })
	o, err := execute(ctx, `{"script": "sleep 60"}`)
	require.NoError(t, err)
	require.Equal(t, task.OutcomeFailure, o.Kind)
	require.Contains(t, o.Reason, task.ErrCanceled.Error())
}

func TestAPayloadThatIsWrongIsFatal(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{}`: "either", `{"command": ["x"], "script": "y"}`: "either", `{"script": "x", "grace": "-1s"}`: "grace",
		`{"script": "x", "env": {"A=": ""}}`: "not the name of a variable", `{"skript": "x"}`: "unknown field",
	} {
		o, err := execute(t.Context(), payload)
		require.ErrorContains(t, err, want)
		require.True(t, taskports.OutcomeOf(o, err).Fatal)
	}
}

// Rule SE5.
func TestAProcessDoesNotGetWhatConfiguresTheWorker(t *testing.T) {
	t.Parallel()
	h := New(func() []string { return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "BUILD_KEY=1"} })
	run := func(client *task.Client) string {
		o, err := h.Execute(t.Context(), task.Task{Spec: task.Spec{Payload: json.RawMessage(`{"script": "env", "env": {"GIVEN": "2"}}`), Origin: task.Origin{Client: client}}})
		require.NoError(t, err)
		return o.Artifacts[0].Text
	}
	require.Contains(t, run(nil), "BUILD_KEY=1")
	asked := run(&task.Client{Name: "ci"})
	require.NotContains(t, asked, "BUILD_KEY")
	for _, want := range []string{"PATH=", "LC_ALL=C", "GIVEN=2"} {
		require.Contains(t, asked, want)
	}
}
