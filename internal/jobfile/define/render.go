package define

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// Load checks the definition like a job file; the error is jobfile.Problems. reg has the registered
// components and those of [Job.Code].
func (j *Job) Load(reg *registry.Registry) (*jobfile.File, error) {
	r := renderOf(j)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return jobfile.Made(j.name, r.texts).Load(reg)
}

// Text returns the definition as a job file, which the history keeps.
func (j *Job) Text() (string, error) {
	r := renderOf(j)
	if len(r.problems) > 0 {
		return "", r.problems
	}
	return r.texts[j.name], nil
}

// Code returns the Go components of the job and its child jobs, with their names for a registry.
func (j *Job) Code() []Named { return renderOf(j).code }

type render struct {
	texts    map[string]string
	jobs     map[string]*Job
	code     []Named
	problems jobfile.Problems

	job     *Job
	element string
	option  string
	used    map[string]int // names of Go code, by how often
	flows   []*Flow        // the current flow and its outer flows
}

func renderOf(j *Job) *render {
	r := &render{texts: map[string]string{}, jobs: map[string]*Job{}}
	r.add(j)
	return r
}

func (r *render) add(j *Job) {
	if other, known := r.jobs[j.name]; known {
		if other != j {
			r.problem(fmt.Errorf("there are two jobs named %s", j.name))
		}
		return
	}
	r.jobs[j.name] = j
	outer := *r
	r.job, r.element, r.option, r.used = j, "", "", map[string]int{}
	made, err := text(r.root(j))
	if err != nil {
		r.problem(err)
	}
	r.texts[j.name] = made
	r.job, r.element, r.option, r.used = outer.job, outer.element, outer.option, outer.used
}

func (r *render) root(j *Job) object {
	root := object{{"job", j.name}}
	root.put("description", j.description)
	root.put("parameters", r.parameters(j.parameters))
	root.put("calendars", r.calendars(j.calendars))
	root.put("database", j.database)
	root.put("timezone", j.timezone)
	if j.timeout != 0 {
		root.put("timeout", j.timeout.String())
	}
	if j.once {
		root.put("restartable", "false")
	}
	root.put("incrementer", j.incrementer)
	root.put("inherit", listOf(j.inherit))
	root.put("schedule", r.schedule(j.schedule))
	root.put("budget", r.budget(j.budget))
	r.placement(&root, j.on)
	root.put("exclusive", j.exclusive)
	root.put("listeners", r.components("listeners", registry.KindListener, j.listeners))
	root = append(root, pair{"flow", r.flow(&j.flow)})
	if j.finally != nil {
		root = append(root, pair{"finally", r.flow(j.finally)})
	}
	root.put("expect", j.expect)
	return root
}

func (r *render) schedule(s *Schedule) object {
	if s == nil {
		return nil
	}
	o := object{{"cron", s.Cron}}
	o.put("timezone", s.Timezone)
	o.put("catch_up", string(s.CatchUp))
	o.put("overlap", string(s.Overlap))
	o.put("calendar", s.Calendar)
	o.put("when_closed", string(s.WhenClosed))
	r.option = "schedule"
	r.value(&o, "parameters", s.Parameters)
	r.option = ""
	return o
}

func (r *render) placement(o *object, p *core.Placement) {
	r.option = "on"
	switch {
	case p == nil:
	case p.Worker != "":
		r.value(o, "on", p.Worker)
	default:
		r.value(o, "on", p.Labels)
	}
	r.option = ""
}

func (r *render) budget(b task.Budget) object {
	var o object
	for _, n := range []struct {
		key   string
		value int
	}{{"max_attempts", b.MaxAttempts}, {"max_total_attempts", b.MaxTotalAttempts}, {"max_no_progress", b.MaxNoProgress}} {
		if n.value != 0 {
			o.put(n.key, strconv.Itoa(n.value))
		}
	}
	if b.Deadline != 0 {
		o.put("deadline", b.Deadline.String())
	}
	return o
}

func (r *render) parameters(specs []Parameter) object {
	var all object
	for _, p := range specs {
		r.option = "parameters." + p.Name
		o := object{{"type", string(p.Type)}}
		o.put("doc", p.Doc)
		r.value(&o, "default", p.Default)
		if p.Optional {
			o.put("required", "false")
		}
		if p.NotIdentifying {
			o.put("identifying", "false")
		}
		o.put("pattern", p.Pattern)
		r.value(&o, "enum", p.Enum)
		r.value(&o, "min", p.Min)
		r.value(&o, "max", p.Max)
		if slices.ContainsFunc(all, func(other pair) bool { return other.key == p.Name }) {
			r.problem(errors.New("there are two parameters of this name"))
			continue
		}
		all = append(all, pair{p.Name, o})
	}
	r.option = ""
	return all
}

func (r *render) calendars(given []Calendar) object {
	var all object
	for _, c := range given {
		r.option = "calendars." + c.Name
		if slices.ContainsFunc(all, func(other pair) bool { return other.key == c.Name }) {
			r.problem(errors.New("there are two calendars of this name"))
			continue
		}
		o := object{}
		o.put("base", c.Base)
		if c.Weekend != nil {
			days := list{}
			for _, day := range c.Weekend {
				days = append(days, strings.ToUpper(day.String()[:3]))
			}
			o = append(o, pair{"weekend", days})
		}
		r.value(&o, "holidays", c.Holidays)
		r.value(&o, "until", c.Until)
		all = append(all, pair{c.Name, o})
	}
	r.option = ""
	return all
}

func (r *render) value(o *object, key string, v any) {
	made, err := encode(v)
	switch text, isText := made.(string); {
	case err != nil:
		r.problem(fmt.Errorf("%s: %w", key, err))
	case isText && text == "":
		*o = append(*o, pair{key, text})
	default:
		o.put(key, made)
	}
}

func (r *render) problem(err error) {
	place := "job"
	if r.job != nil {
		place += " " + r.job.name
	}
	for _, more := range []string{r.element, r.option} {
		if more != "" {
			place += ": " + more
		}
	}
	r.problems = append(r.problems, jobfile.Problem{Msg: err.Error(), Place: place})
}

func (r *render) flow(f *Flow) list {
	elements := list{}
	if f == nil {
		return elements
	}
	if slices.Contains(r.flows, f) {
		r.problem(errors.New("the flow is in itself"))
		return elements
	}
	r.flows = append(r.flows, f)
	defer func() { r.flows = r.flows[:len(r.flows)-1] }()
	for _, e := range f.elements {
		outer := r.element
		r.element = e.kind + " " + e.name
		elements = append(elements, r.elementOf(e))
		r.element = outer
	}
	return elements
}

func (r *render) elementOf(e element) object {
	o := object{{e.kind, e.name}}
	with := With{}
	switch {
	case len(e.with) > 1:
		r.problem(errors.New("With is given more than once"))
	case len(e.with) == 1:
		with = e.with[0]
	}
	o.put("when", with.When)
	switch e.kind {
	case "step":
		r.work(&o, e.work)
	case "decide":
		r.decision(&o, e)
	case "split":
		branches := list{}
		for _, b := range e.branches {
			branches = append(branches, r.flow(b))
		}
		o = append(o, pair{"branches", branches})
	case "flow", "atomic":
		o = append(o, pair{"steps", r.flow(e.branches[0])})
	case "job":
		r.child(&o, e)
	}
	r.more(&o, with)
	return o
}

func (r *render) child(o *object, e element) {
	if e.child == nil {
		r.problem(errors.New("the child job is nil"))
		return
	}
	r.add(e.child)
	*o = append(*o, pair{"file", e.child.name})
	var given object
	for _, name := range slices.Sorted(maps.Keys(e.parameters)) {
		given = append(given, pair{name, e.parameters[name]})
	}
	o.put("parameters", given)
}

func (r *render) work(o *object, work Work) {
	switch w := work.(type) {
	case nil:
	case Component:
		*o = append(*o, pair{"tasklet", r.component("tasklet", registry.KindTasklet, w)})
	case Chunk:
		*o = append(*o, pair{"chunk", r.chunk(w)})
	case Tasks:
		*o = append(*o, pair{"tasks", r.tasks(w)})
	}
}

func (r *render) tasks(t Tasks) object {
	o := object{{"handler", t.Handler}}
	switch {
	case t.Items != nil && !t.Reader.isZero():
		r.problem(errors.New("tasks: there are Items and a Reader: one of them makes the tasks"))
	case t.Items != nil:
		items := list{}
		for i, item := range t.Items {
			payload, err := encodePayload(item)
			if err != nil {
				r.problem(fmt.Errorf("tasks.items[%d]: %w", i+1, err))
			}
			items = append(items, payload)
		}
		o = append(o, pair{"items", items})
	case !t.Reader.isZero():
		o.put("items", r.component("tasks.items", registry.KindReader, t.Reader))
	}
	o.put("key", t.Key)
	o.put("after", t.After)
	o.put("budget", r.budget(t.Budget))
	r.placement(&o, t.On)
	return o
}

func (r *render) chunk(c Chunk) object {
	var o object
	o.put("size", number(c.Size))
	o.put("isolate", c.Isolate)
	if c.NoReprocess {
		o.put("reprocess", "false")
	}
	o.flag("process_in_transaction", c.ProcessInTransaction)
	o.put("concurrency", number(c.Concurrency))
	o.put("read_ahead", c.ReadAhead)
	if !c.Reader.isZero() {
		o.put("reader", r.component("chunk.reader", registry.KindReader, c.Reader))
	}
	o.put("processor", r.components("chunk.processor", registry.KindProcessor, c.Processors))
	o.put("writer", r.components("chunk.writer", registry.KindWriter, c.Writers))
	if c.Retry != nil {
		r.value(&o, "retry", *c.Retry)
	}
	if c.Skip != nil {
		r.value(&o, "skip", *c.Skip)
	}
	return o
}

func (r *render) decision(o *object, e element) {
	if e.decider != nil {
		*o = append(*o, pair{"decider", r.component("decider", registry.KindDecider, *e.decider)})
		return
	}
	choices := list{}
	for _, c := range e.choices {
		var choice object
		choice.put("when", c.when)
		choices = append(choices, append(choice, pair{"next", r.target(c.target)}))
	}
	*o = append(*o, pair{"choose", choices})
}

func (r *render) more(o *object, with With) {
	if p := with.Partition; p != nil {
		partition := object{{"by", r.component("partition.by", registry.KindPartitioner, p.By)}}
		partition.put("workers", number(p.Workers))
		partition.flag("remote", p.Remote)
		r.placement(&partition, p.On)
		*o = append(*o, pair{"partition", partition})
	}
	o.put("remote", with.Remote)
	r.placement(o, with.Placement)
	if with.Transaction != nil {
		r.value(o, "transaction", *with.Transaction)
	}
	if with.Retry != nil {
		r.value(o, "retry", *with.Retry)
	}
	o.put("listeners", r.components("listeners", registry.KindListener, with.Listeners))
	if with.Timeout != 0 {
		o.put("timeout", with.Timeout.String())
	}
	o.put("expect", with.Expect)
	r.value(o, "promote", with.Promote)
	o.put("start_limit", number(with.StartLimit))
	o.flag("allow_start_if_complete", with.AllowStartIfComplete)
	switch {
	case with.Next != "" && len(with.On) > 0:
		r.problem(errors.New(`with Next and On it is not said which one success follows: say "COMPLETED": To(...) in On`))
	case with.Next != "":
		o.put("next", with.Next)
	case len(with.On) > 0:
		var cases object
		for _, pattern := range slices.Sorted(maps.Keys(with.On)) {
			cases = append(cases, pair{pattern, r.target(with.On[pattern])})
		}
		o.put("next", cases)
	}
}

func (r *render) target(t Target) any {
	var exit object
	switch t.kind {
	case "to":
		return t.name
	case "stop":
		exit.put("restart", t.restart)
		exit.put("message", t.message)
	case "end", "fail":
		exit.put("exit", t.exit)
	default:
		r.problem(errors.New("a target is zero: To, End, Fail and Stop make one"))
	}
	if len(exit) == 0 {
		return t.kind
	}
	return object{{t.kind, exit}}
}

func (r *render) components(option string, kind registry.Kind, given []Component) any {
	if len(given) == 1 {
		return r.component(option, kind, given[0])
	}
	var refs list
	for i, c := range given {
		refs = append(refs, r.component(option+"["+strconv.Itoa(i+1)+"]", kind, c))
	}
	return refs
}

func (r *render) component(option string, kind registry.Kind, c Component) any {
	r.option = option
	defer func() { r.option = "" }()
	switch {
	case c.inline != nil:
		return r.inline(kind, *c.inline)
	case c.name == "":
		r.problem(errors.New("the " + string(kind) + " is missing"))
		return ""
	}
	config, err := encode(c.config)
	if err != nil {
		r.problem(fmt.Errorf("%s: %w", c.name, err))
	}
	if config == nil {
		return c.name
	}
	return object{{c.name, config}}
}

func (r *render) inline(kind registry.Kind, code Code) any {
	switch {
	case code.Err != nil:
		r.problem(code.Err)
	case code.Kind != kind:
		r.problem(fmt.Errorf("this takes a %s, and here is a %s", kind, code.Kind))
	}
	_, element, _ := strings.Cut(r.element, " ")
	name := cmp.Or(element, "job") + "." + string(kind)
	r.used[name]++
	if n := r.used[name]; n > 1 {
		name += strconv.Itoa(n)
	}
	name = r.job.name + "." + name
	r.code = append(r.code, Named{name, code})
	return object{{name, code.Type}}
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
