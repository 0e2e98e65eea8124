package otel_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/otel"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Spans of an application's own tracer provider: batch.Observe(otel.New(provider, ...)).
func ExampleNew() {
	spans := tracetest.NewSpanRecorder()
	o := otel.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), otel.Options{})
	execution := core.JobExecution{ID: 12, JobName: "nightly", Status: core.StatusCompleted}
	ctx := core.Enter(context.Background(), o, core.JobStarted{Execution: execution})
	o.Observe(ctx, core.JobEnded{Execution: execution})
	for _, span := range spans.Ended() {
		fmt.Println(span.Name())
	}
	// Output: job nightly
}
