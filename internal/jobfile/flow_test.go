package jobfile_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (s *scene) storyOf(t *testing.T, exec *core.JobExecution) []string {
	t.Helper()
	steps, err := s.Repository.Steps(t.Context(), exec.ID)
	require.NoError(t, err)
	var story []string
	for _, step := range steps {
		story = append(story, step.Name+" "+step.ExitCode)
	}
	return story
}

func TestAFileWithEveryElementRunsFromStartToFinally(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		text, err := os.ReadFile("testdata/valid/flow.yaml")
		require.NoError(t, err)
		s := newScene(t, url, "testdata/valid/flow.yaml", string(text))
		s.acts = map[string]func(c *core.StepContribution) error{
			"first": func(c *core.StepContribution) error {
				return errors.Join(c.Context.Put("rows", 12), c.Context.Put("name", "n"))
			},
			"left": func(c *core.StepContribution) error { c.Counters.Read = 7; return nil },
			"two":  func(*core.StepContribution) error { return nil },
		}
		exec, err := s.launch(t, nil)
		require.NoError(t, err)
		story := s.storyOf(t, exec)
		require.Equal(t, core.StatusCompleted, exec.Status, "%s %v", exec.Error, story)
		require.Equal(t, "first COMPLETED", story[0])
		require.ElementsMatch(t, []string{"left COMPLETED", "left_two COMPLETED", "right_one COMPLETED", "right_two COMPLETED"}, story[1:5])
		require.Equal(t, []string{"one COMPLETED", "two COMPLETED", "three COMPLETED", "parts COMPLETED"}, story[5:9])
		require.ElementsMatch(t, []string{"parts:a COMPLETED", "parts:b COMPLETED", "parts:2026-11-20 COMPLETED"}, story[9:12])
		require.Equal(t, []string{"child COMPLETED", "tell NOOP", "clean COMPLETED"}, story[12:])

		s.mu.Lock()
		defer s.mu.Unlock()
		require.ElementsMatch(t, []string{
			"n=0 label=a ", "n=1 label=a ", "n=1 label=b ", "n=2 label=b ", "n=2 label=2026-11-20 ", "n=3 label=2026-11-20 ",
		}, s.rows)
		require.ElementsMatch(t, []string{
			"flow: before job flow", "seen: before job flow", "flow: after job COMPLETED", "seen: after job COMPLETED",
			"seen: after step first", "seen: after step parts:a", "seen: after step parts:b", "seen: after step parts:2026-11-20",
		}, s.seen)
		var texts []string
		for _, note := range s.notes {
			texts = append(texts, note.Text)
		}
		require.Contains(t, texts, "COMPLETED", "right_two reads the status of right_one")
		require.Contains(t, texts, "2026-11-20 6 of flow", "the child has its parameters")
		child, err := s.Repository.Executions(t.Context(), ports.ExecutionFilter{JobName: "good"})
		require.NoError(t, err)
		require.Len(t, child, 1)
		require.Contains(t, texts, fmt.Sprintf("%d NOOP", child[0].ID))
	})
}

const review = `
job: review
parameters: {most: {type: int, default: 10, identifying: false}}
flow:
- step: load
  tasklet: note
- decide: quality
  choose:
  - {when: steps.load.skipped == 0, next: publish}
  - {when: steps.load.skipped <= params.most, next: report}
  - next: {stop: {restart: report, message: over the limit}}
- step: report
  when: steps.load.status == 'COMPLETED' && steps.load.exit == 'COMPLETED'
  tasklet: {note: "${steps.load.skipped} of ${steps.load.read}"}
- step: publish
  tasklet: note
`

func TestAChoiceIsTakenByWhatTheStepsDid(t *testing.T) {
	t.Parallel()
	for skipped, story := range map[int64][]string{
		0:  {"load COMPLETED", "publish COMPLETED"},
		10: {"load COMPLETED", "report COMPLETED", "publish COMPLETED"},
		11: {"load COMPLETED"},
	} {
		s := newScene(t, testdb.SQLite(t), "job.yaml", review)
		s.acts = map[string]func(c *core.StepContribution) error{"load": func(c *core.StepContribution) error {
			c.Counters = core.Counters{Read: 100, ProcessSkip: skipped}
			return nil
		}}
		exec, err := s.launch(t, nil)
		require.NoError(t, err)
		require.Equal(t, story, s.storyOf(t, exec), skipped)
		if skipped < 11 {
			require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
			continue
		}
		require.Equal(t, core.StatusStopped, exec.Status)
		require.Contains(t, exec.Error, "over the limit")
		exec, err = s.launch(t, map[string]string{"most": "50"})
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []string{"report COMPLETED", "publish COMPLETED"}, s.storyOf(t, exec), "the verdict is kept")
		require.Equal(t, "11 of 100", s.notes[1].Text)
	}
}

func TestAGateThatDoesNotHoldSaysWithWhichValues(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: gates
parameters: {least: {type: int, default: 5}}
flow:
- step: load
  tasklet: note
  expect: written >= params.least and skipped == 0
- step: after
  tasklet: note
`)
	s.acts = map[string]func(c *core.StepContribution) error{"load": func(c *core.StepContribution) error {
		c.Counters.Write = 3
		return nil
	}}
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, []string{"load EXPECT_FAILED"}, s.storyOf(t, exec))
	step := s.Step(exec, "load")
	require.Contains(t, step.Error, "written >= params.least and skipped == 0")
	require.Contains(t, step.Gate+step.Error, "params.least = 5, skipped = 0, written = 3")
}

func TestTheGateOfTheJobSpeaksOfItsSteps(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: gates
expect: steps.a.read == steps.b.read and job.status == 'COMPLETED'
flow:
- {step: a, tasklet: note}
- {step: b, tasklet: note}
`)
	s.acts = map[string]func(c *core.StepContribution) error{"a": func(c *core.StepContribution) error {
		c.Counters.Read = 3
		return nil
	}}
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, core.ExitExpectFailed, exec.ExitCode)
	require.Contains(t, exec.Error+exec.Gate, "steps.a.read = 3, steps.b.read = 0")
}

func TestANumberOfAStepThatWasPassedByIsAClearError(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: passed
flow:
- step: a
  tasklet: note
  next: {RARE: b, "*": c}
- step: b
  tasklet: note
- step: c
  when: steps.b.status != '' and steps.b.read > 0
  tasklet: note
- step: d
  tasklet: note
  expect: steps.b.written == written
`)
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusFailed, exec.Status)
	require.Equal(t, []string{"a COMPLETED", "c NOOP", "d FAILED"}, s.storyOf(t, exec))
	require.Contains(t, s.Step(exec, "d").Error, "job.yaml:14:11: step b has not run, so it has no numbers; test for that with steps.b.status == ''")
}

func TestAnAtomicGroupOfTheFileCommitsAllOrNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		text := `
job: group
flow:
- step: tables
  tasklet: {sql: create table n (i int)}
- atomic: both
  steps:
  - step: one
    tasklet: {sql: insert into n values (1)}
  - step: saved
    transaction: {propagation: NESTED}
    tasklet: {sql: insert into nowhere values (1)}
    next: {FAILED: two}
  - step: two
    transaction: {propagation: MANDATORY}
    tasklet: {sql: insert into n values (2)}
  next: {FAILED: bad}
- atomic: bad
  steps:
  - step: three
    tasklet: {sql: insert into n values (3)}
  - step: four
    tasklet: {sql: insert into nowhere values (4)}
  next: {FAILED: last}
- step: last
  tasklet: {sql: insert into n values (5)}
`
		engine := testengine.New(t, url)
		reg := shipped(t)
		file, err := jobfile.Parse("job.yaml", []byte(text), reg)
		require.NoError(t, err)
		compiled, err := file.Compile(jobfile.Deps{Provider: engine.Provider, Registry: reg})
		require.NoError(t, err)
		exec, err := engine.Launcher.Run(t.Context(), compiled, core.Parameters{}, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
		require.Equal(t, []int64{1, 2, 5}, engine.Ints("select i from n order by i"))
	})
}

func TestAListenerThatHearsNothingWhereItIsFailsClearly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"listeners: watch\nflow: [{step: a, tasklet: note}]":                                                      "listener watch listens to steps, chunks or items, not to jobs: name it in the listeners of a step; here it needs BeforeJob or AfterJob",
		"listeners: deaf\nflow: [{step: a, tasklet: note}]":                                                       "the constructor of listener deaf made a int, which is not a listener",
		"flow: [{step: a, tasklet: note, listeners: watch}]":                                                      "listener watch listens to chunks and items, which a tasklet step does not have: there it needs BeforeStep or AfterStep",
		"flow: [{step: a, tasklet: note, listeners: gong}]":                                                       "listener gong listens to jobs (BeforeJob, AfterJob), not to steps: name it in the listeners of the job",
		"flow: [{step: a, chunk: {reader: {count: {to: 1}}, writer: {sink: x}}, listeners: [bell, watch, deaf]}]": "the constructor of listener deaf made a int, which is not a listener",
	} {
		s := newScene(t, testdb.SQLite(t), "job.yaml", "job: x\n"+text)
		exec, err := s.launch(t, nil)
		require.NoError(t, err)
		require.Equal(t, core.StatusFailed, exec.Status)
		require.Contains(t, exec.Error, want, text)
	}
}

func TestTheIncrementerCountsOnOrGoesToTheNextDay(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"run": "1", "day": "2026-11-21"} {
		s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: x
parameters: {run: {type: int, default: 0}, day: {type: date, default: 2026-11-20}}
incrementer: `+name+`
flow: [{step: a, tasklet: note}]
`)
		first, err := job.ValidateParameters(s.file.Parameters(), nil)
		require.NoError(t, err)
		next, err := s.job.Incrementer(&core.JobExecution{Params: first}, core.Parameters{})
		require.NoError(t, err)
		p, ok := next.Get(name)
		require.True(t, ok)
		text, err := p.Canonical()
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
}

func TestWhatADatabaseCannotDoInAGroupIsRefusedBeforeItRuns(t *testing.T) {
	t.Parallel()
	_, err := compile(t, testdb.SQLite(t), `
job: x
flow:
- atomic: group
  transaction: {isolation: serializable}
  steps:
  - {step: a, tasklet: note}
  - {step: b, tasklet: note, transaction: {propagation: REQUIRES_NEW}}
  - {step: c, tasklet: note, transaction: {propagation: NEVER}}
  - {step: d, tasklet: idle}
  - {step: e, tasklet: note, transaction: {propagation: NOT_SUPPORTED}}
`)
	var problems jobfile.Problems
	require.ErrorAs(t, err, &problems)
	require.Equal(t, `job.yaml:8:57: propagation REQUIRES_NEW in an atomic group: database default has one writer, and the group's transaction holds it
    8 |   - {step: b, tasklet: note, transaction: {propagation: REQUIRES_NEW}}
      |                                                         ^ REQUIRED joins the group's transaction, NESTED makes a savepoint in it
job.yaml:9:57: propagation NEVER fails in an atomic group, which has a transaction
    9 |   - {step: c, tasklet: note, transaction: {propagation: NEVER}}
      |                                                         ^ NOT_SUPPORTED runs without it`, problems.Error())
}

func TestAPromotedKeyIsReadFromTheContextAndADecisionMayBePassedBy(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: x
flow:
- step: count
  tasklet: note
  promote: {rows: total, none: other}
- decide: skipped
  when: context.other != nil
  choose: [{next: never}]
- decide: many
  choose:
  - {when: "int(context.total ?? '0') > 10", next: {end: {exit: MANY}}}
  - {when: "int(context.total ?? '0') > 100", next: {end: {exit: MANY}}}
  - next: never
- step: never
  tasklet: {note: "${context.total ?? ''}"}
`)
	s.acts = map[string]func(c *core.StepContribution) error{"count": func(c *core.StepContribution) error { return c.Context.Put("rows", 12) }}
	exec, err := s.launch(t, nil)
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, "MANY", exec.ExitCode)
	require.Equal(t, []string{"count COMPLETED"}, s.storyOf(t, exec))
}

func TestAParameterOfAChildThatDoesNotFitRefusesTheLaunch(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: x
parameters: {size: {type: int}, day: {type: string, default: 20}}
flow:
- {job: child, file: testdata/children/good.yaml, parameters: {day: "2026-11-${params.day}", size: "${params.size}"}}
`)
	_, err := s.launch(t, map[string]string{"size": "11", "day": "31"})
	require.ErrorContains(t, err, "job.yaml:5:69: day: \"2026-11-31\" is not a date (yyyy-MM-dd)")
	require.ErrorContains(t, err, "size: 11 is more than 10")
	exec, err := s.launch(t, map[string]string{"size": "9"})
	require.NoError(t, err)
	require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
	require.Equal(t, "2026-11-20 1 x", s.notes[0].Text)
}

func TestADeciderAnswersTheExitCode(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: x
parameters: {side: {type: string}}
flow:
- decide: toss
  decider: {coin: "${params.side}"}
  next: {HEAD: won, EDGE: {stop: {message: toss it again}}}
- {step: lost, tasklet: note, next: fail}
- {step: won, tasklet: note}
`)
	for side, want := range map[string]core.Status{"HEAD": core.StatusCompleted, "TAIL": core.StatusFailed, "EDGE": core.StatusStopped} {
		exec, err := s.launch(t, map[string]string{"side": side})
		require.NoError(t, err)
		require.Equal(t, want, exec.Status, side)
	}
}

// A read that failed and was skipped is not among the items read (rule C11).
func TestTheGateOfASkippedReadIsBalanced(t *testing.T) {
	t.Parallel()
	for gate, want := range map[string]string{
		"balanced":                               "",
		"balanced and written == 3":              "",
		"read == written + filtered + skipped":   "filtered = 0, read = 4, skipped = 2, written = 3",
		"balanced and written == 4":              "balanced = true, read = 4, read_skipped = 1, written = 3, filtered = 0, skipped = 2",
		"steps.before.balanced and not balanced": "steps.before.balanced = true, steps.before.read = 0",
	} {
		t.Run(gate, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, testdb.SQLite(t), "job.yaml", `
job: gates
flow:
- step: before
  tasklet: note
- step: load
  tasklet: note
  expect: `+gate+"\n")
			s.acts = map[string]func(c *core.StepContribution) error{"load": func(c *core.StepContribution) error {
				c.Counters = core.Counters{Read: 4, ReadSkip: 1, Write: 3, WriteSkip: 1}
				return nil
			}}
			exec, err := s.launch(t, nil)
			require.NoError(t, err)
			if want == "" {
				require.Equal(t, core.StatusCompleted, exec.Status, exec.Error)
				return
			}
			require.Equal(t, core.StatusFailed, exec.Status)
			require.Contains(t, s.Step(exec, "load").Gate, want)
		})
	}
}
