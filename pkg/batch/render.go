package batch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/jobfile/encode"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// load checks the definition like a job file; the error is jobfile.Problems. reg has the registered
// components and those of [Job.code].
func (j *Job) load(reg *registry.Registry) (*jobfile.File, error) {
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

// code returns the Go components of the job and its child jobs, with their names for a registry.
func (j *Job) code() []namedCode { return renderOf(j).code }

type render struct {
	texts    map[string]string
	jobs     map[string]*Job
	code     []namedCode
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
	made, err := encode.Text(r.root(j))
	if err != nil {
		r.problem(err)
	}
	r.texts[j.name] = made
	r.job, r.element, r.option, r.used = outer.job, outer.element, outer.option, outer.used
}

func (r *render) root(j *Job) encode.Object {
	root := encode.Map("job", j.name)
	root.Put("description", j.description)
	root.Put("parameters", r.parameters(j.parameters))
	root.Put("calendars", r.calendars(j.calendars))
	root.Put("database", j.database)
	root.Put("timezone", j.timezone)
	if j.timeout != 0 {
		root.Put("timeout", j.timeout.String())
	}
	if j.once {
		root.Put("restartable", "false")
	}
	root.Put("incrementer", j.incrementer)
	root.Put("inherit", encode.ListOf(j.inherit))
	root.Put("schedule", r.schedule(j.schedule))
	root.Put("budget", r.budget(j.budget))
	r.placement(&root, j.on)
	root.Put("exclusive", j.exclusive)
	root.Put("listeners", r.components("listeners", registry.KindListener, j.listeners))
	root.Add("flow", r.flow(&j.flow))
	if j.finally != nil {
		root.Add("finally", r.flow(j.finally))
	}
	root.Put("expect", j.expect)
	return root
}

func (r *render) schedule(s *Schedule) encode.Object {
	if s == nil {
		return nil
	}
	o := encode.Map("cron", s.Cron)
	o.Put("timezone", s.Timezone)
	o.Put("catch_up", string(s.CatchUp))
	o.Put("overlap", string(s.Overlap))
	o.Put("calendar", s.Calendar)
	o.Put("when_closed", string(s.WhenClosed))
	r.option = "schedule"
	r.value(&o, "parameters", s.Parameters)
	r.option = ""
	return o
}

func (r *render) placement(o *encode.Object, p *core.Placement) {
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

func (r *render) budget(b Budget) encode.Object {
	var o encode.Object
	for _, n := range []struct {
		key   string
		value int
	}{{"max_attempts", b.MaxAttempts}, {"max_total_attempts", b.MaxTotalAttempts}, {"max_no_progress", b.MaxNoProgress}} {
		if n.value != 0 {
			o.Put(n.key, strconv.Itoa(n.value))
		}
	}
	if b.Deadline != 0 {
		o.Put("deadline", b.Deadline.String())
	}
	return o
}

func (r *render) parameters(specs []Parameter) encode.Object {
	var all encode.Object
	for _, p := range specs {
		r.option = "parameters." + p.Name
		o := encode.Map("type", string(p.Type))
		o.Put("doc", p.Doc)
		r.value(&o, "default", p.Default)
		if p.Optional {
			o.Put("required", "false")
		}
		if p.NotIdentifying {
			o.Put("identifying", "false")
		}
		o.Put("pattern", p.Pattern)
		r.value(&o, "enum", p.Enum)
		r.value(&o, "min", p.Min)
		r.value(&o, "max", p.Max)
		if slices.ContainsFunc(all, func(other encode.Pair) bool { return other.Key == p.Name }) {
			r.problem(errors.New("there are two parameters of this name"))
			continue
		}
		all.Add(p.Name, o)
	}
	r.option = ""
	return all
}

func (r *render) calendars(given []Calendar) encode.Object {
	var all encode.Object
	for _, c := range given {
		r.option = "calendars." + c.Name
		if slices.ContainsFunc(all, func(other encode.Pair) bool { return other.Key == c.Name }) {
			r.problem(errors.New("there are two calendars of this name"))
			continue
		}
		o := encode.Object{}
		o.Put("base", c.Base)
		if c.Weekend != nil {
			days := encode.List{}
			for _, day := range c.Weekend {
				days = append(days, strings.ToUpper(day.String()[:3]))
			}
			o.Add("weekend", days)
		}
		r.value(&o, "holidays", c.Holidays)
		r.value(&o, "until", c.Until)
		all.Add(c.Name, o)
	}
	r.option = ""
	return all
}

func (r *render) value(o *encode.Object, key string, v any) {
	made, err := encode.Value(v)
	switch text, isText := made.(string); {
	case err != nil:
		r.problem(fmt.Errorf("%s: %w", key, err))
	case isText && text == "":
		o.Add(key, text)
	default:
		o.Put(key, made)
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

func (r *render) flow(f *Flow) encode.List {
	elements := encode.List{}
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

func (r *render) elementOf(e element) encode.Object {
	o := encode.Map(e.kind, e.name)
	with := With{}
	switch {
	case len(e.with) > 1:
		r.problem(errors.New("With is given more than once"))
	case len(e.with) == 1:
		with = e.with[0]
	}
	o.Put("when", with.When)
	switch e.kind {
	case "step":
		r.work(&o, e.work)
	case "decide":
		r.decision(&o, e)
	case "split":
		branches := encode.List{}
		for _, b := range e.branches {
			branches = append(branches, r.flow(b))
		}
		o.Add("branches", branches)
	case "flow", "atomic":
		o.Add("steps", r.flow(e.branches[0]))
	case "job":
		r.child(&o, e)
	}
	r.more(&o, with)
	return o
}

func (r *render) child(o *encode.Object, e element) {
	if e.child == nil {
		r.problem(errors.New("the child job is nil"))
		return
	}
	r.add(e.child)
	o.Add("file", e.child.name)
	var given encode.Object
	for _, name := range slices.Sorted(maps.Keys(e.parameters)) {
		given.Add(name, e.parameters[name])
	}
	o.Put("parameters", given)
}

func (r *render) work(o *encode.Object, work Work) {
	switch w := work.(type) {
	case nil:
	case Component:
		o.Add("tasklet", r.component("tasklet", registry.KindTasklet, w))
	case Chunk:
		o.Add("chunk", r.chunk(w))
	case Tasks:
		o.Add("tasks", r.tasks(w))
	}
}

func (r *render) tasks(t Tasks) encode.Object {
	o := encode.Map("handler", t.Handler)
	switch {
	case t.Items != nil && !t.Reader.isZero():
		r.problem(errors.New("tasks: there are Items and a Reader: one of them makes the tasks"))
	case t.Items != nil:
		items := encode.List{}
		for i, item := range t.Items {
			payload, err := encode.JSON(item)
			if err != nil {
				r.problem(fmt.Errorf("tasks.items[%d]: %w", i+1, err))
			}
			items = append(items, payload)
		}
		o.Add("items", items)
	case !t.Reader.isZero():
		o.Put("items", r.component("tasks.items", registry.KindReader, t.Reader))
	}
	o.Put("key", t.Key)
	o.Put("after", t.After)
	o.Put("budget", r.budget(t.Budget))
	r.placement(&o, t.On)
	return o
}

func (r *render) chunk(c Chunk) encode.Object {
	var o encode.Object
	o.Put("size", number(c.Size))
	o.Put("isolate", c.Isolate)
	if c.NoReprocess {
		o.Put("reprocess", "false")
	}
	o.Flag("process_in_transaction", c.ProcessInTransaction)
	o.Put("concurrency", number(c.Concurrency))
	o.Put("read_ahead", c.ReadAhead)
	if !c.Reader.isZero() {
		o.Put("reader", r.component("chunk.reader", registry.KindReader, c.Reader))
	}
	o.Put("processor", r.components("chunk.processor", registry.KindProcessor, c.Processors))
	o.Put("writer", r.components("chunk.writer", registry.KindWriter, c.Writers))
	if c.Retry != nil {
		r.value(&o, "retry", *c.Retry)
	}
	if c.Skip != nil {
		r.value(&o, "skip", *c.Skip)
	}
	return o
}

func (r *render) decision(o *encode.Object, e element) {
	if e.decider != nil {
		o.Add("decider", r.component("decider", registry.KindDecider, *e.decider))
		return
	}
	choices := encode.List{}
	for _, c := range e.choices {
		var choice encode.Object
		choice.Put("when", c.when)
		choice.Add("next", r.target(c.target))
		choices = append(choices, choice)
	}
	o.Add("choose", choices)
}

func (r *render) more(o *encode.Object, with With) {
	if p := with.Partition; p != nil {
		partition := encode.Map("by", r.component("partition.by", registry.KindPartitioner, p.By))
		partition.Put("workers", number(p.Workers))
		partition.Flag("remote", p.Remote)
		r.placement(&partition, p.On)
		o.Add("partition", partition)
	}
	o.Put("remote", with.Remote)
	r.placement(o, with.Placement)
	if with.Transaction != nil {
		r.value(o, "transaction", *with.Transaction)
	}
	if with.Retry != nil {
		r.value(o, "retry", *with.Retry)
	}
	o.Put("listeners", r.components("listeners", registry.KindListener, with.Listeners))
	if with.Timeout != 0 {
		o.Put("timeout", with.Timeout.String())
	}
	o.Put("expect", with.Expect)
	r.value(o, "promote", with.Promote)
	o.Put("start_limit", number(with.StartLimit))
	o.Flag("allow_start_if_complete", with.AllowStartIfComplete)
	switch {
	case with.Next != "" && len(with.On) > 0:
		r.problem(errors.New(`with Next and On it is not said which one success follows: say "COMPLETED": To(...) in On`))
	case with.Next != "":
		o.Put("next", with.Next)
	case len(with.On) > 0:
		var cases encode.Object
		for _, pattern := range slices.Sorted(maps.Keys(with.On)) {
			cases.Add(pattern, r.target(with.On[pattern]))
		}
		o.Put("next", cases)
	}
}

func (r *render) target(t Target) any {
	var exit encode.Object
	switch t.kind {
	case "to":
		return t.name
	case "stop":
		exit.Put("restart", t.restart)
		exit.Put("message", t.message)
	case "end", "fail":
		exit.Put("exit", t.exit)
	default:
		r.problem(errors.New("a target is zero: To, End, Fail and Stop make one"))
	}
	if len(exit) == 0 {
		return t.kind
	}
	return encode.Map(t.kind, exit)
}

func (r *render) components(option string, kind registry.Kind, given []Component) any {
	if len(given) == 1 {
		return r.component(option, kind, given[0])
	}
	var refs encode.List
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
	config, err := encode.Value(c.config)
	if err != nil {
		r.problem(fmt.Errorf("%s: %w", c.name, err))
	}
	if config == nil {
		return c.name
	}
	return encode.Map(c.name, config)
}

func (r *render) inline(kind registry.Kind, code code) any {
	switch {
	case code.err != nil:
		r.problem(code.err)
	case code.kind != kind:
		r.problem(fmt.Errorf("this takes a %s, and here is a %s", kind, code.kind))
	}
	_, element, _ := strings.Cut(r.element, " ")
	name := cmp.Or(element, "job") + "." + string(kind)
	r.used[name]++
	if n := r.used[name]; n > 1 {
		name += strconv.Itoa(n)
	}
	name = r.job.name + "." + name
	r.code = append(r.code, namedCode{name, code})
	return encode.Map(name, code.typ)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
