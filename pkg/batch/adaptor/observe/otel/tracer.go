// Package otel makes OpenTelemetry traces of jobs: a span per job execution, step execution (flows,
// partitions and child jobs nest), and committed chunk. docs/howto/observability.md lists spans and
// attributes.
//
// It imports core and OpenTelemetry, and its module.go fx and settings. OpenTelemetry is heavy: package
// batch does not import this package, the stock binary does.
package otel

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

const scopeName = "github.com/surfin-batch/surfin"

// traceKey is the job context's key of the span's W3C traceparent, so that the restart's span links to it.
const traceKey = "surfin.traceparent"

// DefaultChunks is the most chunk spans of one step.
const DefaultChunks = 1000

// Options adjust an observer.
type Options struct {
	// Chunks is the maximum number of chunk spans of one step (0: none); the attribute
	// surfin.chunks.unrecorded counts the others.
	Chunks int
	// Environ is as os.Environ: TRACEPARENT and TRACESTATE name the parent span of a job without one in its
	// context.
	Environ []string
}

// Observer makes spans of events: a core.Scope. Safe for concurrent use.
type Observer struct {
	tracer trace.Tracer
	chunks int
	remote trace.SpanContext

	mu    sync.Mutex
	jobs  map[core.JobExecutionID]span
	steps map[core.StepExecutionID]*stepSpan
}

type span struct {
	trace.Span
	ctx context.Context
}

type stepSpan struct {
	span
	name   string
	job    core.JobExecutionID
	chunks int
}

// New returns an observer with a tracer of provider.
func New(provider trace.TracerProvider, o Options) *Observer {
	return &Observer{
		tracer: provider.Tracer(scopeName), chunks: o.Chunks, remote: fromEnvironment(o.Environ),
		jobs: map[core.JobExecutionID]span{}, steps: map[core.StepExecutionID]*stepSpan{},
	}
}

func fromEnvironment(environ []string) trace.SpanContext {
	carrier := propagation.MapCarrier{}
	for _, v := range environ {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "TRACEPARENT", "TRACESTATE":
			carrier[strings.ToLower(name)] = value
		}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier)
	return trace.SpanContextFromContext(ctx)
}

// Observe makes or ends the event's span.
func (o *Observer) Observe(ctx context.Context, e core.Event) { o.Enter(ctx, e) }

// Enter is Observe, and returns the context with the span of a beginning job or step.
func (o *Observer) Enter(ctx context.Context, e core.Event) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := e.(type) {
	case core.JobStarted:
		return o.jobStarted(ctx, e)
	case core.StepStarted:
		return o.stepStarted(ctx, e)
	case core.StepEnded:
		o.stepEnded(e)
	case core.JobEnded:
		o.jobEnded(e)
	case core.OwnerLost:
		o.end(e.Execution, "another process took the execution over")
	case core.EndNotRecorded:
		o.note(ctx, e)
		if e.Step == "" {
			o.end(e.Execution, "the end could not be recorded")
		}
	case core.ChunkCommitted:
		o.chunk(e)
	default:
		o.note(ctx, e)
	}
	return ctx
}

func (o *Observer) jobStarted(ctx context.Context, e core.JobStarted) context.Context {
	exec := e.Execution
	if !trace.SpanContextFromContext(ctx).IsValid() && o.remote.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, o.remote)
	}
	options := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("surfin.job", exec.JobName),
		attribute.Int64("surfin.execution", int64(exec.ID)),
		attribute.Int64("surfin.instance", int64(exec.InstanceID)),
		attribute.Int("surfin.attempt", exec.Attempt),
		attribute.Bool("surfin.restarted", e.Restarted),
	)}
	if previous := lastTrace(exec.Context); previous.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{
			SpanContext: previous, Attributes: []attribute.KeyValue{attribute.String("surfin.link", "previous execution")},
		}))
	}
	ctx, s := o.tracer.Start(ctx, "job "+exec.JobName, options...)
	ctx = context.WithValue(ctx, here{}, exec.ID)
	o.jobs[exec.ID] = span{s, ctx}
	leaveTrace(ctx, exec.Context)
	return ctx
}

func lastTrace(c *core.ExecutionContext) trace.SpanContext {
	if c == nil {
		return trace.SpanContext{}
	}
	text, ok := c.Get(traceKey)
	parent, isText := text.(string)
	if !ok || !isText {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent})
	return trace.SpanContextFromContext(ctx)
}

// leaveTrace is called before the flow begins, when nothing else uses the job's context; if it has no room,
// it stays unchanged.
func leaveTrace(ctx context.Context, c *core.ExecutionContext) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	if parent := carrier["traceparent"]; c != nil && parent != "" {
		c.Put(traceKey, parent) //nolint:errcheck // a link is not worth a job
	}
}

func (o *Observer) stepStarted(ctx context.Context, e core.StepStarted) context.Context {
	attributes := []attribute.KeyValue{
		attribute.String("surfin.job", e.Step.JobName),
		attribute.Int64("surfin.execution", int64(e.Step.JobExecutionID)),
		attribute.String("surfin.step", e.Step.Name),
		attribute.Int64("surfin.step_execution", int64(e.Step.ID)),
		attribute.Bool("surfin.restarted", e.Restarted),
	}
	if e.Kind != "" {
		attributes = append(attributes, attribute.String("surfin.step.kind", e.Kind))
	}
	ctx, s := o.tracer.Start(o.parent(ctx, e.Step), "step "+e.Step.Name, trace.WithAttributes(attributes...))
	ctx = context.WithValue(ctx, here{}, e.Step.ID)
	o.steps[e.Step.ID] = &stepSpan{span: span{s, ctx}, name: e.Step.Name, job: e.Step.JobExecutionID}
	return ctx
}

// here is the key of the innermost of our works in a context: a core.StepExecutionID or a
// core.JobExecutionID.
type here struct{}

// The parent is the span in ctx if it belongs to this execution, else the step that has it as a partition,
// else the job.
func (o *Observer) parent(ctx context.Context, step core.StepExecution) context.Context {
	job, ok := o.jobs[step.JobExecutionID]
	if !ok {
		return ctx
	}
	switch id := ctx.Value(here{}).(type) {
	case core.JobExecutionID:
		if id == step.JobExecutionID {
			return ctx
		}
	case core.StepExecutionID:
		if s := o.steps[id]; s != nil && s.job == step.JobExecutionID {
			return ctx
		}
	}
	if name, _, partition := strings.Cut(step.Name, ":"); partition {
		if s := o.on(step.JobExecutionID, name); s.Span != nil {
			return trace.ContextWithSpan(ctx, s.Span)
		}
	}
	return trace.ContextWithSpan(ctx, job.Span)
}

func (o *Observer) stepEnded(e core.StepEnded) {
	s := o.steps[e.Step.ID]
	if s == nil {
		return
	}
	delete(o.steps, e.Step.ID)
	s.SetAttributes(counters(e.Step.Counters)...)
	s.SetAttributes(attribute.String("surfin.status", string(e.Step.Status)), attribute.String("surfin.exit_code", e.Step.ExitCode))
	if n := s.chunks - o.chunks; n > 0 {
		s.SetAttributes(attribute.Int("surfin.chunks.unrecorded", n))
	}
	failed := e.Step.Status == core.StatusFailed || e.Step.Status == core.StatusUnknown
	if failed && e.Err != nil {
		s.RecordError(e.Err)
	}
	finish(s.span, failed, e.Step.Error)
}

func (o *Observer) jobEnded(ended core.JobEnded) {
	e := ended.Execution
	s, ok := o.jobs[e.ID]
	if !ok {
		return
	}
	if ended.Err != nil {
		s.RecordError(ended.Err)
	}
	s.SetAttributes(attribute.String("surfin.status", string(e.Status)), attribute.String("surfin.exit_code", e.ExitCode))
	if e.Status == core.StatusFailed || e.Status == core.StatusUnknown {
		o.end(e.ID, e.Error)
		return
	}
	o.endSteps(e.ID, "its end was not reported")
	delete(o.jobs, e.ID)
	finish(s, false, "")
}

func (o *Observer) end(id core.JobExecutionID, why string) {
	o.endSteps(id, why)
	if s, ok := o.jobs[id]; ok {
		delete(o.jobs, id)
		finish(s, true, why)
	}
}

func (o *Observer) endSteps(id core.JobExecutionID, why string) {
	for step, s := range o.steps {
		if s.job == id {
			delete(o.steps, step)
			finish(s.span, true, why)
		}
	}
}

// Close ends the spans of executions that did not end in this process.
func (o *Observer) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.jobs {
		o.end(id, "the process ended before the execution did")
	}
}

func finish(s span, failed bool, why string) {
	if failed {
		s.SetStatus(codes.Error, why)
	} else {
		s.SetStatus(codes.Ok, "")
	}
	s.End()
}

func (o *Observer) chunk(e core.ChunkCommitted) {
	s := o.steps[e.StepID]
	if s == nil {
		return
	}
	s.chunks++
	if s.chunks > o.chunks {
		return
	}
	end := time.Now()
	_, c := o.tracer.Start(s.ctx, "chunk", trace.WithTimestamp(end.Add(-e.Took)),
		trace.WithAttributes(attribute.String("surfin.step", e.Step), attribute.Int("surfin.chunk", s.chunks)),
		trace.WithAttributes(counters(e.Counters)...))
	c.End(trace.WithTimestamp(end))
}

// on the span of a chunk: the step's so far
func counters(c core.Counters) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Int64("surfin.items.read", c.Read), attribute.Int64("surfin.items.written", c.Write),
		attribute.Int64("surfin.items.filtered", c.Filter), attribute.Int64("surfin.items.skipped", c.Skips()),
		attribute.Int64("surfin.commits", c.Commit), attribute.Int64("surfin.rollbacks", c.Rollback),
	}
}

func (o *Observer) note(ctx context.Context, e core.Event) {
	switch e := e.(type) {
	case core.ChunkRolledBack:
		if s := o.steps[e.StepID]; s != nil {
			s.AddEvent("chunk rolled back", trace.WithAttributes(errorAttributes(e.Err)...))
		}
	case core.GateChecked:
		o.on(e.Execution, e.Step).event("gate checked", attribute.String("surfin.gate", e.Gate), attribute.Bool("surfin.gate.held", e.Held))
	case core.Decided:
		o.on(e.Execution, "").event("decision taken", attribute.String("surfin.element", e.Element), attribute.String("surfin.verdict", e.Verdict), attribute.Bool("surfin.verdict.kept", e.Kept))
	case core.TasksSubmitted:
		o.on(e.Execution, e.Step).event("tasks submitted", attribute.Int64("surfin.group", e.Group), attribute.String("surfin.handler", e.Handler), attribute.Int("surfin.tasks", e.Tasks))
	case core.ElementSkipped:
		o.on(e.Execution, "").event("element skipped", attribute.String("surfin.element", e.Element), attribute.String("surfin.condition", e.Condition))
	case core.StepPassed:
		id := e.Execution
		if job, ok := ctx.Value(here{}).(core.JobExecutionID); ok && id == 0 {
			id = job
		}
		o.on(id, "").event("step passed", attribute.String("surfin.step", e.Step.Name), attribute.String("surfin.exit_code", e.Step.ExitCode))
	case core.StopAsked:
		o.on(e.Execution, "").event("stop requested")
	case core.StopFailed:
		o.on(e.Execution, e.Step).event("a tasklet could not be stopped", errorAttributes(e.Err)...)
	case core.CloseFailed:
		o.on(e.Execution, e.Step).event("a component could not be closed", errorAttributes(e.Err)...)
	case core.ListenerFailed:
		o.on(e.Execution, e.Step).event("a listener failed when it was called with an error", errorAttributes(e.Err)...)
	case core.EndNotRecorded:
		o.on(e.Execution, e.Step).event("the end could not be recorded", errorAttributes(e.Err)...)
	case core.HeartbeatFailed:
		o.on(e.Execution, "").event("heartbeat failed", errorAttributes(e.Err)...)
	case core.SeriesNotStored:
		o.on(e.Execution, "").event("counters over time could not be stored", errorAttributes(e.Err)...)
	case core.LaunchWaits:
		o.on(e.Execution, e.Step).event("a launch waits: " + e.Reason)
	case core.ComponentLate:
		o.on(e.Execution, e.Step).event("the lease is about to expire, and a component has not returned", errorAttributes(e.Err)...)
	}
}

func (o *Observer) on(id core.JobExecutionID, step string) span {
	for _, s := range o.steps {
		if step != "" && s.job == id && s.name == step {
			return s.span
		}
	}
	return o.jobs[id]
}

func (s span) event(name string, attributes ...attribute.KeyValue) {
	if s.Span != nil {
		s.AddEvent(name, trace.WithAttributes(attributes...))
	}
}

func errorAttributes(err error) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	return []attribute.KeyValue{
		attribute.String("exception.type", fmt.Sprintf("%T", err)),
		attribute.String("exception.message", err.Error()),
	}
}
