package prometheus_test

import (
	"context"
	"fmt"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// Metrics in the application's own registry, which it offers as it likes: batch.Observe(metrics).
func ExampleNew() {
	metrics := prometheus.New()
	registry := client.NewRegistry()
	registry.MustRegister(metrics)
	metrics.Observe(context.Background(), core.Transitioned{Machine: "job execution", Trigger: "launch", Answer: core.Applied})
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "surfin_transitions_total" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	// Output: surfin_transitions_total 1
}
