package prometheus_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testtree"
	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/guard"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

func TestASurgeOfDuplicatesFiresTheAlertOfTheApplicationThatHasIt(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: tools/ensure promtool installs it")
	}
	ctx := t.Context()
	provider, err := gormdb.Open(ctx, map[string]gormdb.Config{tx.Default: {URL: testdb.SQLite(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	db, err := provider.Database(tx.Default)
	require.NoError(t, err)
	_, err = db.Conn().ExecContext(ctx, "CREATE TABLE orders (id bigint PRIMARY KEY, status int NOT NULL)")
	require.NoError(t, err)
	type status int
	machine, err := core.NewMachine("order",
		core.Move[status]{Name: "pay", From: []status{0}, To: 1, Intent: core.IntentBegin},
		core.Move[status]{Name: "pack", From: []status{1}, To: 2, Intent: core.IntentBegin},
		core.Move[status]{Name: "send", From: []status{2}, To: 3, Intent: core.IntentEnd})
	require.NoError(t, err)
	metrics, registry := prometheus.New(), client.NewRegistry()
	registry.MustRegister(metrics)
	orders := guard.NewTable(db, "orders", machine, metrics, guard.WithColumns(guard.Columns{ID: "id", State: "status"}))
	ask := func(id int64, move string, times int) {
		for range times {
			if _, err := orders.Move(ctx, guard.Request{ID: id, Move: move}); err != nil {
				require.ErrorContains(t, err, "transition to 3 refused")
			}
		}
	}
	series, minutes := map[string][]string{}, 0
	minute := func() {
		record(t, registry, series, minutes)
		minutes++
	}
	for id := range int64(40) { // each event comes once, except for two; then the surge begins
		_, err := db.Conn().ExecContext(ctx, "INSERT INTO orders VALUES (?, 0)", id)
		require.NoError(t, err)
		ask(id, "pay", 1)
		ask(id, "pack", 1)
		if id == 5 {
			ask(id, "pay", 2)
			ask(id, "pack", 2)
		}
		if id == 7 {
			ask(id, "pay", 1)
			_, err := db.Conn().ExecContext(ctx, "INSERT INTO orders VALUES (1007, 0)")
			require.NoError(t, err)
			ask(1007, "send", 1) // too early
		}
		if id >= 25 {
			ask(id, "pay", 3)
		}
		minute()
	}
	firing := func(name string, at int, labels ...string) string {
		text := fmt.Sprintf("      - {expr: 'ALERTS{alertname=\"%s\",alertstate=\"firing\"}', eval_time: %dm, exp_samples: [", name, at)
		for _, l := range labels {
			text += fmt.Sprintf(`{labels: 'ALERTS{alertname="%s",alertstate="firing",instance="shop",machine="order",severity="warning",%s}', value: 1}`, name, l)
		}
		return text + "]}\n"
	}
	var b strings.Builder
	rules, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "..", "deploy", "prometheus", "surfin-alerts.yaml"))
	require.NoError(t, err)
	b.WriteString("rule_files: [" + rules + "]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n")
	for _, name := range slices.Sorted(maps.Keys(series)) {
		fmt.Fprintf(&b, "      - {series: '%s', values: '%s'}\n", name, strings.Join(series[name], " "))
	}
	b.WriteString("    promql_expr_test:\n" + firing("SurfinDuplicateSurge", 20) + firing("SurfinDuplicateSurge", 36, `trigger="pay"`))
	file := filepath.Join(t.TempDir(), "surge.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	out, err := testtree.Command(ctx, promtool, "test", "rules", file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, b.String())
}

// record adds the exporter's current values of transitions to the series, as Prometheus stores them: a series
// that does not exist yet has no value.
func record(t *testing.T, from client.Gatherer, series map[string][]string, minutes int) {
	t.Helper()
	families, err := from.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "surfin_transitions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := []string{`instance="shop"`}
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			for len(series[name]) < minutes {
				series[name] = append(series[name], "_")
			}
			series[name] = append(series[name], fmt.Sprint(m.GetCounter().GetValue()))
		}
	}
}
