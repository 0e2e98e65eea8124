package job_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/model"
	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/step"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

const soakVariable = "SURFIN_SOAK"

// flowsOn returns how many random flows a property tries on a database: cases
// on SQLite, and a third of them on PostgreSQL, which differs in statements,
// not in the walk.
func flowsOn(url string, cases, shareOnSQLite, shareOnPostgres int) int {
	if testing.Short() {
		cases = 10
	}
	n, err := strconv.Atoi(os.Getenv(soakVariable))
	switch sqlite := onSQLite(url); {
	case err == nil && sqlite:
		return n / shareOnSQLite
	case err == nil:
		return n / shareOnPostgres
	case testengine.Few():
		return 1
	case sqlite:
		return cases
	}
	return cases / 3
}

func onSQLite(url string) bool { return strings.HasPrefix(url, "sqlite") }

func isSoak() bool { return os.Getenv(soakVariable) != "" }

// rarely returns the number of moments between two deaths: each, unless few
// are wanted.
func rarely(each int) int {
	if testengine.Few() {
		return 10 * each
	}
	return each
}

func TestARandomFlowDoesTheSameHoweverOftenItDies(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		e := testengine.New(t, url)
		e.Exec("CREATE TABLE done (job text NOT NULL, step text NOT NULL)")
		for seed := range flowsOn(url, 6, 10, 10) {
			require.NoError(t, randomCase(t, e, uint64(seed)), "seed %d", seed)
		}
	})
}

func randomCase(t *testing.T, e *testengine.Engine, seed uint64) error {
	calm := &weather{Engine: e, random: rand.New(rand.NewPCG(seed, 0))}
	stormy := &weather{Engine: e, random: rand.New(rand.NewPCG(seed, 0))}
	return compareCase(t, calm, stormy, seed)
}

func compareCase(t *testing.T, calm, stormy *weather, seed uint64) error {
	calm.name, stormy.name = fmt.Sprintf("calm%d", seed), fmt.Sprintf("stormy%d", seed)
	exec, err := calm.launch(calm.job())
	if err != nil || exec.Status != core.StatusCompleted {
		return fmt.Errorf("the calm run ended %v: %w", exec, err)
	}
	j := stormy.job()
	stormy.storm = rand.New(rand.NewPCG(seed, 1))
	var history []string
	for range 200 {
		exec, err := stormy.launch(j)
		if exec == nil {
			exec = &core.JobExecution{}
		}
		history = append(history, fmt.Sprintf("%v %v %s", exec.Status, stormy.trail(), strings.ReplaceAll(fmt.Sprint(exec.Error, err), "\n", "; ")))
		if err == nil && exec.Status == core.StatusCompleted || errors.As(err, new(*ports.InstanceCompleteError)) {
			want, got := calm.strict(t), stormy.strict(t)
			if !slices.Equal(want, got) {
				return fmt.Errorf("flow %s\n%s\n%s", describe(j.Flow), difference(want, got), strings.Join(history, "\n"))
			}
			return promotedAlike(calm, stormy)
		}
	}
	return fmt.Errorf("flow %s did not complete\n%s", describe(j.Flow), strings.Join(history[len(history)-5:], "\n"))
}

func difference(want, got []string) string {
	count := map[string]int{}
	for _, name := range got {
		count[name]++
	}
	for _, name := range want {
		count[name]--
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n == 0 })
	return fmt.Sprint("too often: ", count)
}

type weather struct {
	*testengine.Engine
	name   string
	random *rand.Rand // of the flow
	steps  int
	loose  map[string]bool

	mu       sync.Mutex
	storm    *rand.Rand // nil means calm
	ran      []string
	launches int
	killAt   *killAt
	// observer observes the launches; nil means none.
	observer core.Observer
	// wild flows have loops more often, stops with restart points at earlier elements, and failures
	// that lead back: back means that the flow has one.
	wild, back bool
	retries    bool
	tries      bool
	// from is the element at which the next launch begins; empty means a plain
	// launch.
	from    string
	natural bool
}

func (w *weather) trail() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ran := w.ran
	w.ran = nil
	return ran
}

func (w *weather) lightning(one int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.storm != nil && w.storm.IntN(one+w.launches) == 0
}

func (w *weather) done(t *testing.T) []string {
	rows, err := w.Database.Conn().QueryContext(t.Context(), "SELECT step FROM done WHERE job = '"+w.name+"' ORDER BY step")
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // rows.Err is checked
	var list []string
	for rows.Next() {
		var name string
		require.NoError(t, rows.Scan(&name))
		list = append(list, name)
	}
	require.NoError(t, rows.Err())
	return list
}

func (w *weather) strict(t *testing.T) []string {
	return slices.DeleteFunc(w.done(t), func(step string) bool { return w.loose[step] })
}

func (w *weather) job() *model.Job {
	w.loose = map[string]bool{}
	j := w.ofFlow(func(w *weather) model.Flow { return w.flow(0) })
	if w.random.IntN(3) == 0 {
		w.loose["finally"] = true
		j.Finally = model.Flow{Elements: []model.Element{w.step("finally")}}
	}
	return j
}

func (w *weather) flow(depth int) model.Flow {
	n := 1 + w.random.IntN(4-depth)
	var f model.Flow
	var names []string
	for i := range n {
		made := w.elements(depth, i > 0 && (w.random.IntN(3) == 0 || w.wild && w.random.IntN(2) == 0), names)
		f.Elements = append(f.Elements, made...)
		names = append(names, made[0].ElementName())
	}
	for i, at := range f.Elements {
		next := ""
		if i+1 < len(f.Elements) {
			next = f.Elements[i+1].ElementName()
			w.lead(at, next)
		}
		w.hold(at, next)
		w.retry(at, names[:min(i, len(names))])
	}
	return f
}

func (w *weather) retry(at model.Element, before []string) {
	e, ok := at.(*model.StepElement)
	if !w.retries || !ok || len(before) == 0 || w.random.IntN(3) > 0 {
		return
	}
	back := model.Target{Kind: model.TargetElement, Name: before[w.random.IntN(len(before))]}
	e.Next = append([]model.Transition{{Pattern: core.ExitFailed, Target: back}}, e.Next...)
}

func (w *weather) lead(at model.Element, next string) {
	follow := model.Transition{Success: true, Pattern: "*", Target: model.Target{Kind: model.TargetElement, Name: next}}
	switch e := at.(type) {
	case *model.StepElement:
		e.Next = append(e.Next, follow)
	case *model.DecisionElement:
		e.Next = append(e.Next, follow)
	case *model.SplitElement:
		e.Next = append(e.Next, follow)
	case *model.FlowElement:
		e.Next = append(e.Next, follow)
	case *model.AtomicElement:
		e.Next = append(e.Next, follow)
	}
}

func (w *weather) elements(depth int, loop bool, before []string) []model.Element {
	w.steps++
	name := fmt.Sprintf("e%d", w.steps)
	var made model.Element
	var more []model.Element
	switch kind := w.random.IntN(13); {
	case kind < 4 || depth > 1:
		made = w.step("s" + name)
	case kind == 8:
		made = w.partitioned("p"+name, w.random.IntN(3))
	case kind == 9:
		made = w.child("c"+name, "bc"+name)
	case kind == 10:
		made = w.holding("h" + name)
	case kind == 11:
		made, more = w.recovering("f"+name, "r"+name)
	case kind == 12:
		made = w.repeated("t" + name)
	case kind == 4:
		made = &model.SplitElement{Name: name, Workers: w.random.IntN(3), Branches: []model.Flow{w.flow(depth + 1), w.flow(depth + 1)}}
	case kind == 5:
		made = &model.FlowElement{Name: name, Flow: w.flow(depth + 1)}
	case kind == 6:
		made = &model.FlowElement{Name: name, Flow: w.flow(depth + 1), AsStep: true}
	default:
		made = w.group(name)
	}
	w.condition(made, before)
	if w.wild && len(before) > 0 && w.random.IntN(6) == 0 {
		w.leadBack(made, before[w.random.IntN(len(before))])
	}
	if !loop {
		return append([]model.Element{made}, more...)
	}
	marker := w.step("m" + name)
	rounds := int64(2 + w.random.IntN(2))
	back := before[w.random.IntN(len(before))]
	d := &model.DecisionElement{
		Name: "d" + name,
		Decide: func(context.Context, *core.View) (string, error) {
			if w.lightning(10) {
				return "", errors.New("undecided")
			}
			if w.lightning(10) {
				return "HOLD", nil
			}
			if w.rows(marker.Step.Name())%rounds != 0 {
				return "AGAIN", nil
			}
			return "ON", nil
		},
		Next: []model.Transition{
			{Pattern: "AGAIN", Target: model.Target{Kind: model.TargetElement, Name: back}},
			{Pattern: "HOLD", Target: model.Target{Kind: model.TargetStop}},
		},
	}
	if w.wild && w.random.IntN(2) == 0 {
		d.Next[1].Target.Restart = before[w.random.IntN(len(before))]
	}
	return append(append([]model.Element{made}, more...), marker, d)
}

// leadBack makes the failure of an element lead to an earlier one; the number of runs between them is
// unknown then.
func (w *weather) leadBack(at model.Element, to string) {
	failed := model.Transition{Pattern: core.ExitFailed, Target: model.Target{Kind: model.TargetElement, Name: to}}
	switch e := at.(type) {
	case *model.StepElement:
		e.Next = append(e.Next, failed)
	case *model.SplitElement:
		e.Next = append(e.Next, failed)
	case *model.FlowElement:
		e.Next = append(e.Next, failed)
	case *model.AtomicElement:
		e.Next = append(e.Next, failed)
	case *model.DecisionElement:
	}
	w.back = true
}

func (w *weather) rows(step string) int64 {
	return w.Ints(fmt.Sprintf("SELECT count(*) FROM done WHERE job = '%s' AND step = '%s'", w.name, step))[0]
}

func (w *weather) condition(at model.Element, before []string) {
	if w.random.IntN(5) > 0 {
		return
	}
	holds := w.random.IntN(2) == 0
	c := &model.Condition{Text: "random", Holds: func(context.Context, *core.View) (bool, error) { return holds, nil }}
	if w.tries {
		c = w.answerable(holds, before)
	}
	switch e := at.(type) {
	case *model.StepElement:
		e.When = c
	case *model.SplitElement:
		e.When = c
	case *model.FlowElement:
		e.When = c
	case *model.AtomicElement:
		e.When = c
	case *model.DecisionElement:
	}
}

func (w *weather) step(name string) *model.StepElement {
	work := w.working(name)
	s, err := step.NewTasklet(step.TaskletConfig{
		Name: name, Database: w.Database, Promote: &model.Promotion{Keys: map[string]string{"done": name}, Strict: true},
		Assemble: func(context.Context, *model.StepRun) (core.Tasklet, error) {
			return core.TaskletFunc(func(ctx context.Context, c *core.StepContribution) error {
				return errors.Join(c.Context.Put("done", true), work(ctx, c))
			}), nil
		},
	})
	require.NoError(w.T, err)
	return &model.StepElement{Step: s}
}

func (w *weather) working(name string) core.TaskletFunc {
	return func(ctx context.Context, _ *core.StepContribution) error {
		w.mu.Lock()
		w.ran = append(w.ran, name)
		w.mu.Unlock()
		if w.lightning(12) {
			return errors.New("told to fail")
		}
		_, err := tx.ConnOf(ctx, w.Database).ExecContext(ctx, "INSERT INTO done (job, step) VALUES ('"+w.name+"', '"+name+"')")
		if err == nil && w.lightning(12) {
			return errors.New("told to fail late")
		}
		return err
	}
}

func (w *weather) group(name string) *model.AtomicElement {
	a, b := w.step("a"+name), w.step("b"+name)
	w.lead(a, b.ElementName())
	manager := tx.NewManager(w.Database)
	return &model.AtomicElement{
		Name: name, Database: w.Database.Name(), Flow: model.Flow{Elements: []model.Element{a, b}},
		Do: func(ctx context.Context, fn func(context.Context) error) error { return manager.Do(ctx, tx.Attr{}, fn) },
	}
}

func (w *weather) launch(j *model.Job) (*core.JobExecution, error) {
	w.launches++
	r := newMortal(w)
	stop := make(chan struct{})
	r.stop = sync.OnceFunc(func() { close(stop) })
	launcher, err := job.NewLauncher(job.Config{
		Repository: r.Ports(), Executor: step.NewSimpleStepExecutor(r, w.Database.Name(), w.observer), Observer: w.observer,
		Dead: func(core.Owner) bool { return true },
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r.cancel = cancel
	exec, err := launcher.With(job.Options{From: w.from, IfComplete: w.from != ""}).Run(ctx, j, core.Parameters{}, stop)
	w.natural = !r.isDead() && !r.isCut()
	if exec != nil && !r.isDead() {
		w.nothingRuns(exec.ID)
	}
	return exec, err
}

func describe(f model.Flow) string {
	var words []string
	for _, e := range f.Elements {
		word := strings.TrimPrefix(fmt.Sprintf("%T", e), "*core.")[:1] + ":" + e.ElementName()
		if d, ok := e.(*model.DecisionElement); ok {
			word += "(back to " + d.Next[0].Target.Name + ")"
		}
		for _, inner := range model.Flows(e) {
			word += describe(inner)
		}
		words = append(words, word)
	}
	return "[" + strings.Join(words, " ") + "]"
}
