package otel_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/fx"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/otel"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]any
	header   http.Header
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body io.Reader = req.Body
		if req.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(req.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		data, err := io.ReadAll(body)
		var message collector.ExportTraceServiceRequest
		if err := errors.Join(err, proto.Unmarshal(data, &message)); err != nil || req.URL.Path != "/v1/traces" {
			t.Error(req.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.header = req.Header
		for _, of := range message.GetResourceSpans() {
			r.resource = values(of.GetResource().GetAttributes())
			for _, scope := range of.GetScopeSpans() {
				r.spans = append(r.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) tree() map[string][]*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	byID := map[string]*otlp.Span{}
	for _, s := range r.spans {
		byID[string(s.GetSpanId())] = s
	}
	var path func(s *otlp.Span) string
	path = func(s *otlp.Span) string {
		if parent := byID[string(s.GetParentSpanId())]; parent != nil {
			return path(parent) + "/" + s.GetName()
		}
		return s.GetName()
	}
	all := map[string][]*otlp.Span{}
	for _, s := range r.spans {
		all[path(s)] = append(all[path(s)], s)
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b *otlp.Span) int {
			return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
		})
	}
	return all
}

func values(list []*common.KeyValue) map[string]any {
	all := map[string]any{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.GetKey()] = v.IntValue
		case *common.AnyValue_BoolValue:
			all[a.GetKey()] = v.BoolValue
		}
	}
	return all
}

func within(t *testing.T, inner, outer *otlp.Span) {
	t.Helper()
	require.LessOrEqual(t, outer.GetStartTimeUnixNano(), inner.GetStartTimeUnixNano(), "%s begins in %s", inner.GetName(), outer.GetName())
	require.LessOrEqual(t, inner.GetStartTimeUnixNano(), inner.GetEndTimeUnixNano())
	require.LessOrEqual(t, inner.GetEndTimeUnixNano(), outer.GetEndTimeUnixNano(), "%s ends in %s", inner.GetName(), outer.GetName())
}

const loadJob = `
job: load
flow:
- step: create
  tasklet: {sql: "create table ids (id bigint primary key)"}
- step: load
  chunk:
    size: 2
    reader: {csv: {path: in.csv, item: {id: int}}}
    processor: {filter: item.id != 3}
    writer: {table: ids}
    skip: {limit: 10, errors: [parse, constraint]}
`

const input = "id\n1\n2\nx\n3\n4\n4\n5\n"

func TestAJobIsATreeOfSpansAtTheReceiver(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		r := newReceiver(t)
		sender := &otel.Sender{Endpoint: r.URL, Chunks: 10}
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(sender)))
		e.File("in.csv", input)
		run := e.Job(e.File("job.yaml", loadJob)).Completed()
		sender.Close(t.Context())

		tree := r.tree()
		load := run.Step("load").Counters
		require.Len(t, tree["job load"], 1, "%v", tree)
		require.Len(t, tree["job load/step create"], 1)
		require.Len(t, tree["job load/step load"], 1)
		require.Len(t, tree, 4)
		job, step, chunks := tree["job load"][0], tree["job load/step load"][0], tree["job load/step load/chunk"]
		require.GreaterOrEqual(t, len(chunks), int(load.Commit))
		require.Equal(t, "surfin", r.resource["service.name"])

		at := values(job.GetAttributes())
		require.Equal(t, int64(run.Execution.ID), at["surfin.execution"])
		require.Equal(t, "COMPLETED", at["surfin.status"])
		require.Equal(t, otlp.Status_STATUS_CODE_OK, job.GetStatus().GetCode())
		require.Empty(t, job.GetLinks())

		at = values(step.GetAttributes())
		for key, want := range map[string]int64{
			"surfin.items.read": load.Read, "surfin.items.written": load.Write, "surfin.items.filtered": load.Filter,
			"surfin.items.skipped": load.Skips(), "surfin.commits": load.Commit, "surfin.rollbacks": load.Rollback,
		} {
			require.Equal(t, want, at[key], key)
		}
		within(t, step, job)
		within(t, tree["job load/step create"][0], job)
		for _, c := range chunks {
			within(t, c, step)
		}
		last := slices.MaxFunc(chunks, func(a, b *otlp.Span) int { return int(int64(a.GetEndTimeUnixNano()) - int64(b.GetEndTimeUnixNano())) })
		require.Equal(t, load.Write, values(last.GetAttributes())["surfin.items.written"])
		require.NotEmpty(t, step.GetEvents(), "the double key was rolled back")
		require.Equal(t, "chunk rolled back", step.GetEvents()[0].GetName())
	})
}

func TestARestartLinksToTheExecutionThatFailed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		r := newReceiver(t)
		sender := &otel.Sender{Endpoint: r.URL, Chunks: 10}
		e := batchtest.New(t, batchtest.On(url), batchtest.With(batch.Observe(sender)),
			batchtest.WithFaults(batchtest.Fault{Step: "load", Phase: core.PhaseWrite, Calls: []int{2}, Err: errors.New("disk full")}))
		e.File("in.csv", input)
		job := e.File("job.yaml", loadJob)
		e.Job(job).Failed("disk full")
		e.Job(job).Completed()
		sender.Close(t.Context())

		tree := r.tree()
		jobs, steps := tree["job load"], tree["job load/step load"]
		require.Len(t, jobs, 2)
		require.Len(t, steps, 2)
		require.Equal(t, otlp.Status_STATUS_CODE_ERROR, jobs[0].GetStatus().GetCode())
		require.Contains(t, jobs[0].GetStatus().GetMessage(), "disk full")
		require.Equal(t, otlp.Status_STATUS_CODE_ERROR, steps[0].GetStatus().GetCode())
		recorded := steps[0].GetEvents()[len(steps[0].GetEvents())-1]
		require.Equal(t, "exception", recorded.GetName())
		require.Contains(t, values(recorded.GetAttributes())["exception.message"], "disk full")

		require.Equal(t, otlp.Status_STATUS_CODE_OK, jobs[1].GetStatus().GetCode())
		require.Len(t, jobs[1].GetLinks(), 1)
		require.Equal(t, jobs[0].GetSpanId(), jobs[1].GetLinks()[0].GetSpanId())
		require.Equal(t, jobs[0].GetTraceId(), jobs[1].GetLinks()[0].GetTraceId())
		require.Equal(t, true, values(jobs[1].GetAttributes())["surfin.restarted"])
		var passed []string
		for _, event := range jobs[1].GetEvents() {
			passed = append(passed, event.GetName()+" "+values(event.GetAttributes())["surfin.step"].(string))
		}
		require.Equal(t, []string{"step passed create"}, passed)
	})
}

type traced struct{ seen []trace.SpanContext }

func (p *traced) Process(ctx context.Context, n int) (int, error) {
	p.seen = append(p.seen, trace.SpanContextFromContext(ctx))
	return n, nil
}

func TestComponentsFindTheSpanOfTheirStep(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	sender := &otel.Sender{Endpoint: r.URL, Chunks: 0}
	e := batchtest.New(t, batchtest.With(batch.Observe(sender)))
	p := &traced{}
	batchtest.Step(e, chunkOf(2), batchtest.Components[int, int]{
		Reader: batchtest.Slice(1, 2, 3), Processor: p, Writer: &batchtest.Sink[int]{},
	}).Completed()
	sender.Close(t.Context())
	tree := r.tree()
	step := tree["job test/step/step step"]
	require.Len(t, step, 1, "%v", tree)
	require.Len(t, p.seen, 3)
	for _, s := range p.seen {
		id := s.SpanID()
		require.Equal(t, step[0].GetSpanId(), id[:])
	}
	require.Len(t, tree, 2, "no chunk spans were asked for")
	require.EqualValues(t, 2, values(step[0].GetAttributes())["surfin.chunks.unrecorded"])
}

func TestFlowsPartitionsAndChildJobsNest(t *testing.T) {
	t.Parallel()
	for name, enter := range map[string]bool{"with contexts": true, "by names": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			sender := &otel.Sender{Endpoint: r.URL, Chunks: 10}
			in := func(ctx context.Context, e core.Event) context.Context {
				if enter {
					return core.Enter(ctx, core.Observers(sender), e)
				}
				sender.Observe(ctx, e)
				return ctx
			}
			step := func(id int64, name string) core.StepExecution {
				return core.StepExecution{ID: core.StepExecutionID(id), JobExecutionID: 1, JobName: "main", Name: name, Status: core.StatusCompleted}
			}
			main := core.JobExecution{ID: 1, JobName: "main", Status: core.StatusCompleted}
			ctx := in(t.Context(), core.JobStarted{Execution: main})
			flow := in(ctx, core.StepStarted{Step: step(1, "flow"), Kind: "flow"})
			load := in(flow, core.StepStarted{Step: step(2, "load"), Kind: "partition"})
			in(load, core.StepStarted{Step: step(3, "load:a"), Kind: "chunk"})
			in(load, core.StepStarted{Step: step(4, "load:b"), Kind: "chunk"})
			in(load, core.ChunkCommitted{StepID: 4, Took: time.Millisecond})
			child := core.JobExecution{ID: 2, JobName: "child", Status: core.StatusCompleted}
			sub := in(ctx, core.StepStarted{Step: step(5, "sub"), Kind: "job"})
			in(sub, core.JobStarted{Execution: child})
			in(sub, core.JobEnded{Execution: child})
			for id, name := range map[int64]string{1: "flow", 2: "load", 3: "load:a", 4: "load:b", 5: "sub"} {
				in(ctx, core.StepEnded{Step: step(id, name)})
			}
			in(ctx, core.JobEnded{Execution: main})
			sender.Close(t.Context())
			var paths []string
			for path := range r.tree() {
				paths = append(paths, path)
			}
			want := []string{
				"job main", "job main/step flow", "job main/step flow/step load", "job main/step flow/step load/step load:a",
				"job main/step flow/step load/step load:b", "job main/step flow/step load/step load:b/chunk",
				"job main/step sub", "job main/step sub/job child",
			}
			if !enter { // a step without its parent in its name is a child of the job
				want = []string{
					"job child", "job main", "job main/step flow", "job main/step load", "job main/step load/step load:a",
					"job main/step load/step load:b", "job main/step load/step load:b/chunk", "job main/step sub",
				}
			}
			require.ElementsMatch(t, want, paths)
		})
	}
}

func TestWhatDidNotEndIsSentAsAnError(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	sender := &otel.Sender{Endpoint: r.URL}
	for _, e := range []core.Event{
		core.JobStarted{Execution: core.JobExecution{ID: 1, JobName: "a"}},
		core.StepStarted{Step: core.StepExecution{ID: 1, JobExecutionID: 1, Name: "s"}},
		core.HeartbeatFailed{Execution: 1, Err: errors.New("gone")},
		core.OwnerLost{Execution: 1},
		core.JobStarted{Execution: core.JobExecution{ID: 2, JobName: "b"}},
	} {
		sender.Observe(t.Context(), e)
	}
	sender.Close(t.Context())
	sender.Close(t.Context())
	sender.Observe(t.Context(), core.JobStarted{Execution: core.JobExecution{ID: 3, JobName: "late"}})
	tree := r.tree()
	require.Len(t, tree, 3)
	for path, why := range map[string]string{"job a": "another process", "job a/step s": "another process", "job b": "the process ended"} {
		require.Equal(t, otlp.Status_STATUS_CODE_ERROR, tree[path][0].GetStatus().GetCode(), path)
		require.Contains(t, tree[path][0].GetStatus().GetMessage(), why)
	}
	require.Equal(t, "heartbeat failed", tree["job a"][0].GetEvents()[0].GetName())
}

const childVariable = "SURFIN_TEST_OTEL_JOB"

func TestRunTracedJob(t *testing.T) {
	job := os.Getenv(childVariable)
	if job == "" {
		t.Skip("it is a process of another test")
	}
	s, err := settings.Load(settings.Source{Dir: filepath.Dir(job), Environ: os.Environ()})
	require.NoError(t, err)
	app, err := batch.New(t.Context(), s, otel.Module())
	require.NoError(t, err)
	_, err = app.Run(t.Context(), batch.RunRequest{File: job})
	require.NoError(t, err)
	require.NoError(t, app.Close(t.Context()))
}

func TestTheEnvironmentIsHonoured(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job.yaml"), []byte("job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n"), 0o600))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRunTracedJob$")
	cmd.Env = append(os.Environ(), childVariable+"="+filepath.Join(dir, "job.yaml"),
		"OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=secret", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_SERVICE_NAME=nightly", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	job := r.tree()["job one"]
	require.Len(t, job, 1, "%s", out)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", hex.EncodeToString(job[0].GetTraceId()))
	require.Equal(t, "b7ad6b7169203331", hex.EncodeToString(job[0].GetParentSpanId()))
	require.Equal(t, "nightly", r.resource["service.name"])
	require.Equal(t, "test", r.resource["deployment.environment"])
	require.Equal(t, "secret", r.header.Get("Authorization"))
}

func TestAReceiverThatIsNotThereHarmsNoJob(t *testing.T) {
	t.Parallel()
	var log lockedLog
	sender := &otel.Sender{Endpoint: "http://127.0.0.1:1", Log: log.logger()}
	e := batchtest.New(t, batchtest.With(batch.Observe(sender)))
	e.Job(e.File("job.yaml", "job: one\nflow:\n- step: a\n  tasklet: {sql: select 1}\n")).Completed()
	begin := time.Now()
	sender.Close(t.Context())
	require.Less(t, time.Since(begin), 20*time.Second)
	require.Contains(t, log.String(), "traces are not sent")
}

func TestWithoutSettingsTheModuleDoesNothing(t *testing.T) {
	for _, e := range os.Environ() {
		require.False(t, strings.HasPrefix(e, "OTEL_"), e)
	}
	var list []core.Observer
	type found struct {
		fx.In
		List []core.Observer `group:"surfin.observers"`
	}
	before := goleak.IgnoreCurrent()
	app := fx.New(fx.NopLogger, fx.Supply(settings.Settings{}), otel.Module(), fx.Invoke(func(f found) { list = f.List }))
	require.NoError(t, app.Start(t.Context()))
	require.Empty(t, list)
	goleak.VerifyNone(t, before)
	require.NoError(t, app.Stop(t.Context()))
}
