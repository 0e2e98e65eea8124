package jobfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
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
- decide: enough
  choose:
  - {when: steps.load.read > 3, next: end}
  - next: fail
finally:
- step: tidy
  tasklet: {note: done}
`

// history has records such as "load FAILED"; a + means committed work.
func history(steps ...string) map[string]ports.StepHistory {
	found := map[string]ports.StepHistory{}
	for _, s := range steps {
		name, status, _ := strings.Cut(s, " ")
		status, committed := strings.CutSuffix(status, "+")
		last := core.StepExecution{ID: 2, First: 2, Name: name, Status: core.Status(status), Counters: core.Counters{Rollback: 1}}
		if committed {
			last.Counters.ProcessSkip = 1
		}
		found[name] = ports.StepHistory{Last: last}
	}
	return found
}

// lost has the record of a step with a lost process. Compare does not know the database of the records and
// takes each database for another one.
func lost(step string) map[string]ports.StepHistory {
	found := history(step + " FAILED")
	h := found[step]
	h.Last.Error = ports.LostOwner
	found[step] = h
	return found
}

func changeTexts(changes []jobfile.Change) []string {
	var texts []string
	for _, c := range changes {
		text := c.String()
		if c.Place != "" {
			text = c.Place + ": " + text
		}
		if c.Refused {
			text = "! " + text
		}
		if c.NewDefinition {
			text = "= " + text
		}
		texts = append(texts, text)
	}
	return texts
}

const takesNew = " takes its new definition: it has committed nothing"

func TestAChangeIsRefusedWhereCommittedWorkDependsOnIt(t *testing.T) {
	t.Parallel()
	all := history("prepare COMPLETED", "load FAILED+", "parts FAILED", "parts:a COMPLETED", "child STOPPED+", "tidy COMPLETED")
	fresh := history("prepare FAILED", "load FAILED", "parts FAILED", "child FAILED", "last STOPPED")
	for _, c := range []struct {
		name, old, new string
		history        map[string]ports.StepHistory
		want           []string
	}{
		{name: "nothing", old: "hello", new: "hello", history: all},
		{name: "a comment", old: "- step: load", new: "# a note\n- step:   load", history: all},
		{name: "a comment, nothing committed", old: "- step: load", new: "# a note\n- step:   load", history: fresh},
		{name: "a completed step vanished", old: "- step: prepare", new: "- step: prepared", history: history("prepare COMPLETED"), want: []string{
			"! step prepare has completed, and is no longer in the file", "step load is different", "step prepared is new",
		}},
		{name: "a failed step vanished", old: "- step: last", new: "- step: final", history: history("last FAILED+"), want: []string{
			"! step last has committed work and not completed, and is no longer in the file", "step final is new",
		}},
		{name: "a failed step vanished, nothing committed", old: "- step: last", new: "- step: final", history: fresh, want: []string{
			"step last is no longer in the file; it has committed nothing", "step final is new",
		}},
		{name: "a step that never ran vanished", old: "- step: last", new: "- step: final", history: all, want: []string{
			"step last is no longer in the file", "step final is new",
		}},
		{name: "a completed step is another kind", old: "tasklet: {note: hello}", new: "chunk: {reader: {count: {to: 1}}, writer: {sink: x}}", history: all, want: []string{
			"! job.yaml:7:3: step prepare was a tasklet step, and is a chunk step",
		}},
		{name: "another kind, nothing committed", old: "tasklet: {note: hello}", new: "chunk: {reader: {count: {to: 1}}, writer: {sink: x}}", history: fresh, want: []string{
			"= job.yaml:7:3: step prepare" + takesNew,
		}},
		{name: "a completed step does something else", old: "hello", new: "good morning", history: all, want: []string{
			"step prepare is different; it has completed and does not run again",
		}},
		{name: "the failed step reads from elsewhere", old: `to: "${params.to}"`, new: "to: 8", history: all, want: []string{
			"! job.yaml:12:22: step load has committed work with reader count: to 9, and it is 8 now",
		}},
		{name: "nothing committed, from elsewhere", old: `to: "${params.to}"`, new: "to: 8", history: fresh, want: []string{"= job.yaml:9:3: step load" + takesNew}},
		{name: "the same value in other words", old: `to: "${params.to}"`, new: "from: 1, to: 9", history: all, want: []string{"step load is different"}},
		{name: "a value that only the start of the step knows", old: "${steps.prepare.read} x", new: "${steps.prepare.read} y", history: all, want: []string{
			`! job.yaml:12:42: step load has committed work with reader count: label "${steps.prepare.read} x", and it is "${steps.prepare.read} y" now`,
		}},
		{name: "another type of items", old: "text: string null", new: "text: string", history: all, want: []string{
			"! job.yaml:12:76: step load has committed work with reader count: item {n: int, text: string null}, and it is {n: int, text: string} now",
		}},
		{name: "nothing committed, another type", old: "text: string null", new: "text: string", history: fresh, want: []string{"= job.yaml:9:3: step load" + takesNew}},
		{name: "another reader", old: `{count: {to: "${params.to}", label: "${steps.prepare.read} x", item: pair}}`, new: "apples", history: all, want: []string{
			"! job.yaml:12:13: step load has committed work with the reader count, and has the reader apples now",
		}},
		{name: "another writer", old: "writer: {sink: x}\n- step: parts", new: "writer: {sink: z}\n- step: parts", history: all, want: []string{
			`! job.yaml:13:14: step load has committed work with writer sink: name "x", and it is "z" now`,
		}},
		{name: "another choice", old: "read > 3", new: "read > 4", history: all, want: []string{
			"job.yaml:24:3: decision enough is different; the verdict of an earlier attempt is kept unless it failed the job",
		}},
		{name: "one writer more", old: "writer: {sink: x}\n- step: parts", new: "writer: [{sink: x}, {sink: y}]\n- step: parts", history: all, want: []string{
			"! job.yaml:9:3: step load has committed work with 1 writer, and has 2 writers now",
		}},
		{name: "how it writes", old: "writer: {sink: x}\n- step: parts", new: "writer: {sink: {name: x, mode: upsert, database: default}}\n- step: parts", history: all, want: []string{"step load is different"}},
		{name: "nothing committed, another writer", old: "writer: {sink: x}\n- step: parts", new: "writer: {sink: z}\n- step: parts", history: fresh, want: []string{"= job.yaml:9:3: step load" + takesNew}},
		{name: "other parts", old: "names: [a, b]", new: "names: [a, b, c]", history: all, want: []string{
			`! job.yaml:15:31: step parts has planned its partitions with partitioner chapters: names ["a", "b"], and it is ["a", "b", "c"] now`,
		}},
		{name: "other parts, none planned", old: "names: [a, b]", new: "names: [a, b, c]", history: fresh, want: []string{"= job.yaml:14:3: step parts" + takesNew}},
		{name: "other parts, nothing of them committed", old: "names: [a, b]", new: "names: [a, b, c]", history: history("parts FAILED", "parts:a FAILED"), want: []string{
			`! job.yaml:15:31: step parts has planned its partitions with partitioner chapters: names ["a", "b"], and it is ["a", "b", "c"] now`,
		}},
		{name: "what the parts read", old: `to: "${part.last}"`, new: "to: 7", history: all, want: []string{
			`! job.yaml:17:22: step parts has committed work with reader count: to "${part.last}", and it is 7 now`,
		}},
		{name: "what the parts read, nothing of them committed", old: `to: "${part.last}"`, new: "to: 7", history: history("parts FAILED", "parts:a FAILED", "parts:b STOPPED"), want: []string{
			"= job.yaml:14:3: step parts" + takesNew,
		}},
		{name: "no parts any more", old: "  partition: {by: {chapters: {names: [a, b]}}}\n  chunk:\n    reader: {count: {to: \"${part.last}\"}}", new: "  chunk:\n    reader: {count: {to: 3}}", history: all, want: []string{
			"! job.yaml:14:3: step parts was a partitioned step, and is a chunk step",
		}},
		{name: "another child", old: "children/good.yaml", new: "children/other.yaml", history: all, want: []string{
			"! job.yaml:19:3: step child has started the job file testdata/children/good.yaml, and it is testdata/children/other.yaml now",
		}},
		{name: "another child, none started", old: "children/good.yaml", new: "children/other.yaml", history: fresh, want: []string{"= job.yaml:19:3: step child" + takesNew}},
		{name: "other parameters of the child", old: `{day: "${params.day}", n: "${steps.load.read}"}`, new: `{day: 2026-11-20, n: 5, label: "x"}`, history: all, want: []string{
			"! job.yaml:19:3: step child has started it with the parameter label not given, and it is x now",
			"! job.yaml:19:3: step child has started it with the parameter n ${steps.load.read}, and it is 5 now",
		}},
		{name: "a tasklet of a lost process in another database", old: "hello", new: "good morning", history: lost("prepare"), want: []string{
			"step prepare is different; its earlier work may be committed",
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
		require.Equal(t, c.want, changeTexts(jobfile.Compare(before, after, params, c.history)), c.name)
	}
}

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
	require.Equal(t, "file: testdata/children/wrong.yaml has mistakes: see surfin validate testdata/children/wrong.yaml", problems[1].Msg)
}
