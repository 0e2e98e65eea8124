package prometheus_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testtree"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
)

func projectFile(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "..", "..", ".."}, path...)...))
	require.NoError(t, err)
	return data
}

type query struct {
	title, expr string
	texts       []string
}

var (
	metricName = regexp.MustCompile(`\bsurfin_[a-z_]+`)
	matcher    = regexp.MustCompile(`[{,]\s*([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\b(?:by|on|group_left|without)\s*\(([^)]*)\)`)
	labelShown = regexp.MustCompile(`\$labels\.([a-z_]+)`)
	legend     = regexp.MustCompile(`^\{\{([a-z_]+)\}\}|\{\{([a-z_]+)\}\}`)
)

func (q query) check(t *testing.T) {
	t.Helper()
	labels := []string{"instance", ""}
	names := metricName.FindAllString(q.expr, -1)
	require.NotEmpty(t, names, "%s: %s", q.title, q.expr)
	for _, name := range names {
		i := slices.IndexFunc(prometheus.Catalog(), func(e prometheus.Entry) bool {
			if e.Type != prometheus.Histogram {
				return e.Name == name
			}
			return name == e.Name+"_bucket" || name == e.Name+"_sum" || name == e.Name+"_count"
		})
		require.GreaterOrEqual(t, i, 0, "%s: there is no metric %s", q.title, name)
		labels = append(labels, prometheus.Catalog()[i].Labels...)
		if strings.HasSuffix(name, "_bucket") {
			labels = append(labels, "le")
		}
	}
	used := func(label string) {
		require.Contains(t, labels, label, "%s: no metric of %s has the label %s", q.title, q.expr, label)
	}
	for _, m := range matcher.FindAllStringSubmatch(q.expr, -1) {
		used(m[1])
	}
	for _, m := range grouping.FindAllStringSubmatch(q.expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			used(strings.TrimSpace(label))
		}
	}
	for _, text := range q.texts {
		for _, m := range labelShown.FindAllStringSubmatch(text, -1) {
			used(m[1])
		}
		for _, m := range legend.FindAllStringSubmatch(text, -1) {
			used(m[1] + m[2])
		}
	}
	for _, pair := range []string{"()", "[]", "{}"} {
		require.Equal(t, strings.Count(q.expr, pair[:1]), strings.Count(q.expr, pair[1:]), "%s: %s", q.title, q.expr)
	}
}

func TestTheAlertsAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.UnmarshalWithOptions(projectFile(t, "deploy", "prometheus", "surfin-alerts.yaml"), &file, yaml.DisallowUnknownField()))
	var names []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			names = append(names, r.Alert)
			require.Contains(t, []string{"info", "warning", "critical"}, r.Labels["severity"], r.Alert)
			require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			query{r.Alert, r.Expr, []string{r.Annotations["summary"], r.Annotations["description"]}}.check(t)
		}
	}
	for _, name := range []string{"SurfinTransitionRejected", "SurfinDuplicateSurge", "SurfinJobFailed", "SurfinJobTooLong", "SurfinLostOwner"} {
		require.Contains(t, names, name)
	}
	require.Len(t, names, len(slices.Compact(slices.Sorted(slices.Values(names)))), "an alert has a name of its own")
	readme := string(projectFile(t, "deploy", "README.md"))
	for _, name := range names {
		require.Contains(t, readme, "`"+name+"`")
	}
}

func TestEveryAlertFiresForItsFaultOnly(t *testing.T) {
	t.Parallel()
	tests := string(projectFile(t, "deploy", "prometheus", "surfin-alerts_test.yaml"))
	for _, name := range regexp.MustCompile(`(?m)alert: (\w+)$`).FindAllStringSubmatch(string(projectFile(t, "deploy", "prometheus", "surfin-alerts.yaml")), -1) {
		require.Regexp(t, `(?s)alertname: `+name[1]+`\n[^\n]*\n *exp_alerts:\n`, tests, "no test fires the alert")
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool: tools/ensure promtool installs it")
	}
	command := testtree.Command(t.Context(), promtool, "test", "rules", "surfin-alerts_test.yaml")
	command.Dir = filepath.Join("..", "..", "..", "..", "..", "deploy", "prometheus")
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestTheDashboardAsksForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	var board struct {
		Title  string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	require.NoError(t, json.Unmarshal(projectFile(t, "deploy", "grafana", "surfin.json"), &board))
	shown, ids := map[string]bool{}, map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		require.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, taken[at], "%s lies over %s", p.Title, taken[at])
				taken[at] = p.Title
				require.Less(t, at[0], 24)
			}
		}
		require.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		for _, target := range p.Targets {
			query{p.Title, target.Expr, []string{target.LegendFormat}}.check(t)
			for _, name := range metricName.FindAllString(target.Expr, -1) {
				shown[name] = true
			}
		}
	}
	for _, v := range board.Templating.List {
		if v.Definition != "" {
			query{v.Name, v.Definition, nil}.check(t)
		}
	}
	for _, e := range prometheus.Catalog() {
		if e.Type != prometheus.Histogram {
			require.True(t, shown[e.Name], "%s is on no panel", e.Name)
		}
	}
}

func TestAWrongQueryIsFound(t *testing.T) {
	t.Parallel()
	for _, m := range metricName.FindAllString("sum(rate(surfin_items_read_totl[5m]))", -1) {
		require.False(t, slices.ContainsFunc(prometheus.Catalog(), func(e prometheus.Entry) bool { return e.Name == m }))
	}
	require.Equal(t, "jobname", matcher.FindStringSubmatch(`surfin_x{jobname="a"}`)[1])
	require.Equal(t, "a, b", grouping.FindStringSubmatch(`sum by (a, b) (x)`)[1])
}

func TestTheGuideShowsTheCatalog(t *testing.T) {
	t.Parallel()
	require.Contains(t, string(projectFile(t, "docs", "reference", "metrics.md")), prometheus.Table(), "docs/reference/metrics.md is to have this table")
}
