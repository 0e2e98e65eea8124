package slog_test

import (
	"context"
	"log/slog"
	"os"

	observe "github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Events as records of an application's own logger: batch.Observe(observe.New(logger)).
func ExampleNew() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	o := observe.New(slog.New(handler))
	o.Observe(context.Background(), core.Decided{Execution: 12, JobName: "nightly", Element: "enough", Verdict: "report"})
	// Output:
	// level=INFO msg=decided event=decision.taken job=nightly execution=12 element=enough verdict=report kept=false
}
