package otel

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// for the last spans when the process ends
const flushTime = 5 * time.Second

// Module sends traces by OTLP/HTTP if the setting traces.endpoint or the environment
// (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, or OTEL_TRACES_EXPORTER=otlp) asks for
// it. It does not connect before the first job; the last spans are sent at the end, for at most 5 seconds.
func Module() fx.Option {
	return fx.Module("surfin.otel", fx.Provide(fx.Annotate(observers, fx.ResultTags(`group:"surfin.observers,flatten"`))))
}

type dependencies struct {
	fx.In
	Settings settings.Settings
	Log      *slog.Logger `optional:"true"`
}

func observers(lc fx.Lifecycle, d dependencies) ([]core.Observer, error) {
	wanted, err := d.Settings.Traces.Wanted(os.Getenv)
	if !wanted || err != nil {
		return nil, err
	}
	s := &Sender{Endpoint: d.Settings.Traces.Endpoint, Chunks: d.Settings.Traces.Chunks, Log: d.Log}
	lc.Append(fx.StopHook(s.Close))
	return []core.Observer{s}, nil
}

// Sender is an Observer that makes its sender of spans when the first job begins. Close it.
type Sender struct {
	// Endpoint is a receiver's URL; empty means the one in the environment.
	Endpoint string
	// Chunks is as in Options.
	Chunks int
	// Log receives warnings; nil means slog.Default().
	Log *slog.Logger

	mu       sync.Mutex
	observer *Observer
	provider *sdk.TracerProvider
	closed   bool
}

// Observe makes or ends the event's span.
func (s *Sender) Observe(ctx context.Context, e core.Event) { s.Enter(ctx, e) }

// Enter is Observer.Enter.
func (s *Sender) Enter(ctx context.Context, e core.Event) context.Context {
	if o := s.begun(ctx, e); o != nil {
		return o.Enter(ctx, e)
	}
	return ctx
}

func (s *Sender) begun(ctx context.Context, e core.Event) *Observer {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, begins := e.(core.JobStarted)
	if s.observer != nil || s.closed || !begins {
		return s.observer
	}
	provider, err := s.open(ctx)
	if err != nil {
		s.closed = true
		s.log().WarnContext(ctx, "traces are not sent", "error", err.Error())
		return nil
	}
	s.provider = provider
	s.observer = New(provider, Options{Chunks: s.Chunks, Environ: os.Environ()})
	return s.observer
}

func (s *Sender) open(ctx context.Context) (*sdk.TracerProvider, error) {
	var options []otlptracehttp.Option
	if s.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(tracesURL(s.Endpoint)))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "surfin")),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	return sdk.NewTracerProvider(sdk.WithBatcher(loggingExporter{exporter, s.log()}), sdk.WithResource(about)), nil
}

// as for OTEL_EXPORTER_OTLP_ENDPOINT
func tracesURL(endpoint string) string {
	rest := endpoint[strings.Index(endpoint, "//")+2:]
	if _, path, ok := strings.Cut(rest, "/"); ok && path != "" {
		return endpoint
	}
	return strings.TrimSuffix(endpoint, "/") + "/v1/traces"
}

// Errors are logged and not returned: OpenTelemetry would print them a second time.
type loggingExporter struct {
	sdk.SpanExporter
	log *slog.Logger
}

func (t loggingExporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if err := t.SpanExporter.ExportSpans(ctx, spans); err != nil {
		t.log.WarnContext(ctx, "traces are not sent", "spans", len(spans), "error", err.Error())
	}
	return nil
}

// Close ends open spans and sends the remaining ones, for at most 5 seconds. Failures are logged.
func (s *Sender) Close(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	s.observer.Close()
	if err := s.provider.Shutdown(ctx); err != nil {
		s.log().WarnContext(ctx, "traces are not sent", "error", err.Error())
	}
	s.observer, s.provider = nil, nil
}

func (s *Sender) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}
