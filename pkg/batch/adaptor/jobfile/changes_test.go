package jobfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/job"
)

const changing = `
job: changing
parameters: {to: {type: int, default: 9}, day: {type: date, default: 2026-11-20}}
types:
  pair: {n: int, text: string null}
flow:
- step: prepare
  tasklet: {note: hello}
- step: load
  chunk:
    size: 10
    reader: {count: {to: "${params.to}", label: "${steps.prepare.read} x", item: pair}}
    writer: {sink: x}
- step: parts
  partition: {by: {chapters: {names: [a, b]}}}
  chunk:
    reader: {count: {to: "${part.last}"}}
    writer: {sink: x}
- job: child
  file: testdata/children/good.yaml
  parameters: {day: "${params.day}", n: "${steps.load.read}"}
- step: last
  tasklet: {note: bye}
finally:
- step: tidy
  tasklet: {note: done}
`

func history(steps ...string) map[string]core.StepHistory {
	found := map[string]core.StepHistory{}
	for _, s := range steps {
		name, status, _ := strings.Cut(s, " ")
		found[name] = core.StepHistory{Last: core.StepExecution{Name: name, Status: core.Status(status)}}
	}
	return found
}

// Each case changes the file at one place and says what becomes of a restart.
func TestAChangeIsRefusedWhereARestartRestsOnIt(t *testing.T) {
	t.Parallel()
	all := history("prepare COMPLETED", "load FAILED", "parts FAILED", "parts:a COMPLETED", "child STOPPED", "tidy COMPLETED")
	for _, c := range []struct {
		name, old, new string
		history        map[string]core.StepHistory
		want           []jobfile.Change
	}{
		{name: "nothing", old: "hello", new: "hello", history: all},
		{name: "a comment", old: "- step: load", new: "# a note\n- step:   load", history: all},
		{name: "a completed step vanished", old: "- step: prepare", new: "- step: prepared", history: history("prepare COMPLETED"), want: []jobfile.Change{
			{"prepare", "has completed, and is not in the file any more", true}, {"load", "is different", false}, {"prepared", "is new", false},
		}},
		{name: "a failed step vanished", old: "- step: last", new: "- step: final", history: history("last FAILED"), want: []jobfile.Change{
			{"last", "has begun and not completed, and is not in the file any more", true}, {"final", "is new", false},
		}},
		{name: "a step that never ran vanished", old: "- step: last", new: "- step: final", history: all, want: []jobfile.Change{
			{"last", "is not in the file any more", false}, {"final", "is new", false},
		}},
		{name: "a completed step is another kind", old: "tasklet: {note: hello}", new: "chunk: {reader: {count: {to: 1}}, writer: {sink: x}}", history: all, want: []jobfile.Change{
			{"prepare", "was a tasklet step, and is a chunk step", true},
		}},
		{name: "a completed step does something else", old: "hello", new: "good morning", history: all, want: []jobfile.Change{
			{"prepare", "is different; it has completed and does not run again", false},
		}},
		{name: "the failed step reads from elsewhere", old: `to: "${params.to}"`, new: "to: 8", history: all, want: []jobfile.Change{
			{"load", "has begun with reader count: to 9, and it is 8 now", true},
		}},
		{name: "the same value in other words", old: `to: "${params.to}"`, new: "from: 1, to: 9", history: all, want: []jobfile.Change{
			{"load", "is different", false},
		}},
		{name: "a value that only the start of the step knows", old: "${steps.prepare.read} x", new: "${steps.prepare.read} y", history: all, want: []jobfile.Change{
			{"load", `has begun with reader count: label "${steps.prepare.read} x", and it is "${steps.prepare.read} y" now`, true},
		}},
		{name: "another type of items", old: "text: string null", new: "text: string", history: all, want: []jobfile.Change{
			{"load", "has begun with reader count: item [{Name: \"n\", Kind: int, Nullable: false, From: \"\", Format: \"\", Nulls: [], Optional: false}, {Name: \"text\", Kind: string, Nullable: true, From: \"\", Format: \"\", Nulls: [], Optional: false}], " +
				"and it is [{Name: \"n\", Kind: int, Nullable: false, From: \"\", Format: \"\", Nulls: [], Optional: false}, {Name: \"text\", Kind: string, Nullable: false, From: \"\", Format: \"\", Nulls: [], Optional: false}] now", true},
		}},
		{name: "another reader", old: `{count: {to: "${params.to}", label: "${steps.prepare.read} x", item: pair}}`, new: "apples", history: all, want: []jobfile.Change{
			{"load", "has begun with the reader count, and has the reader apples now", true},
		}},
		{name: "another writer", old: "writer: {sink: x}\n- step: parts", new: "writer: {sink: z}\n- step: parts", history: all, want: []jobfile.Change{
			{"load", "is different", false},
		}},
		{name: "other parts", old: "names: [a, b]", new: "names: [a, b, c]", history: all, want: []jobfile.Change{
			{"parts", `has begun with partitioner chapters: names ["a", "b"], and it is ["a", "b", "c"] now`, true},
		}},
		{name: "no parts any more", old: "  partition: {by: {chapters: {names: [a, b]}}}\n  chunk:\n    reader: {count: {to: \"${part.last}\"}}", new: "  chunk:\n    reader: {count: {to: 3}}", history: all, want: []jobfile.Change{
			{"parts", "was a partitioned step, and is a chunk step", true},
		}},
		{name: "another child", old: "children/good.yaml", new: "children/other.yaml", history: all, want: []jobfile.Change{
			{"child", "has begun with the job file testdata/children/good.yaml, and it is testdata/children/other.yaml now", true},
		}},
		{name: "other parameters of the child", old: `{day: "${params.day}", n: "${steps.load.read}"}`, new: `{day: 2026-11-20, n: 5, label: "x"}`, history: all, want: []jobfile.Change{
			{"child", "has begun with the parameter label not given, and it is x now", true},
			{"child", "has begun with the parameter n ${steps.load.read}, and it is 5 now", true},
		}},
		{name: "what is done in the end", old: "- step: tidy\n  tasklet: {note: done}", new: "- step: clean\n  chunk: {reader: {count: {to: 1}}, writer: {sink: x}}", history: all},
	} {
		require.Contains(t, changing, c.old, c.name)
		before, err := jobfile.Parse("job.yaml", []byte(changing), described(t))
		require.NoError(t, err, c.name)
		after, err := jobfile.Parse("job.yaml", []byte(strings.Replace(changing, c.old, c.new, 1)), described(t))
		if c.name == "a completed step vanished" {
			after, err = jobfile.Parse("job.yaml", []byte(strings.ReplaceAll(changing, "prepare", "prepared")), described(t))
		}
		require.NoError(t, err, c.name)
		params, err := job.ValidateParameters(before.Parameters(), nil)
		require.NoError(t, err)
		require.Equal(t, c.want, jobfile.Compare(before, after, params, c.history), c.name)
	}
}

// A text that was stored is read though the files around it have moved; only what
// is compiled needs them.
func TestAStoredTextIsReadWithoutTheFilesOfItsChildren(t *testing.T) {
	t.Parallel()
	text := "job: x\nflow:\n- {step: a, tasklet: note}\n- {job: gone, file: nowhere.yaml, parameters: {a: \"${steps.a.read}\", b: c}}\n- {job: bad, file: testdata/children/wrong.yaml}\n"
	file := parse(t, "job.yaml", text)
	require.Equal(t, []string{"a", "gone", "bad"}, file.Steps())
	_, err := file.Compile(jobfile.Deps{Provider: newScene(t, testdb.SQLite(t), "other.yaml", "job: y\nflow: [{step: a, tasklet: note}]").Provider, Registry: (&bench{}).registry(t)})
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	require.Len(t, problems, 2)
	require.Equal(t, "file: nowhere.yaml cannot be read: no such file or directory", problems[0].Msg)
	require.Equal(t, "file: testdata/children/wrong.yaml is wrong: see surfin validate testdata/children/wrong.yaml", problems[1].Msg)
}
