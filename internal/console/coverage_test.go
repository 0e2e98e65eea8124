package console_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
)

// pagesOf are the pages with the data of an operation of the API.
func pagesOf() map[string]string {
	return map[string]string{
		"/v1/audit": "/audit", "/v1/day": "/{$}", "/v1/definitions": "/jobs", "/v1/events": "/events", "/v1/executions": "/executions", "/v1/executions/{execution}": "/executions/{execution}",
		"/v1/executions/{execution}/compare": "/executions/{execution}/compare", "/v1/executions/{execution}/explain": "/executions/{execution}", "/v1/executions/{execution}/flow": "/executions/{execution}",
		"/v1/executions/{execution}/log": "/executions/{execution}/log", "/v1/executions/{execution}/parts": "/executions/{execution}/parts", "/v1/executions/{execution}/series": "/executions/{execution}/throughput",
		"/v1/executions/{execution}/skips": "/executions/{execution}/skips", "/v1/executions/{execution}/timeline": "/executions/{execution}/timeline", "/v1/groups": "/groups", "/v1/history": "/jobs", "/v1/groups/{group}": "/groups/{group}",
		"/v1/jobs": "/jobs", "/v1/jobs/{job}": "/jobs/{job}", "/v1/jobs/{job}/calendar": "/jobs/{job}", "/v1/jobs/{job}/days": "/jobs/{job}", "/v1/jobs/{job}/flow": "/jobs/{job}", "/v1/jobs/{job}/trend": "/jobs/{job}", "/v1/me": "/{$}", "/v1/overview": "/{$}", "/v1/progress": "/{$}", "/v1/schedules": "/schedules", "/v1/schedules/week": "/schedules", "/v1/schedules/{job}/times": "/schedules/{job}", "/v1/settings": "/settings",
		"/v1/skips": "/skips", "/v1/skips/{skip}": "/skips/{skip}", "/v1/summary": "/jobs", "/v1/tasks": "/tasks", "/v1/tasks/{task}": "/tasks/{task}", "/v1/tasks/{task}/log": "/tasks/{task}/log", "/v1/workers": "/workers",
	}
}

// operationsAndReasons are the methods of each path of the API, and the reasons why some have no page.
func operationsAndReasons(t *testing.T) (methods map[string]map[string]any, reasons string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/openapi.json")
	require.NoError(t, err)
	var document struct{ Paths map[string]map[string]any }
	require.NoError(t, json.Unmarshal(text, &document))
	how, err := os.ReadFile("../../docs/howto/console.md")
	require.NoError(t, err)
	_, below, found := strings.Cut(string(how), "\n## Without a page\n")
	require.True(t, found)
	return document.Paths, below
}

// formsOf are the pages with the form of an operation.
func formsOf() map[string]string {
	return map[string]string{
		"/v1/groups": "/tasks/submit", "/v1/tasks": "/tasks/submit", "/v1/jobs/{job}/register": "/jobs/{job}/register", "/v1/definitions/{job}/run": "/schedules/{job}/run", "/v1/bulk": "/bulk", "/v1/jobs/{job}/backfill": "/jobs/{job}/backfill", "/v1/executions/{execution}/redrive/plan": "/executions/{execution}/redrive",
		"/v1/definitions/{job}/disable": "/schedules/{job}/pause", "/v1/definitions/{job}/enable": "/schedules/{job}/resume", "/v1/events/{event}/offer": "/events/{event}/offer",
		"/v1/executions/{execution}/abandon": "/executions/{execution}/abandon", "/v1/executions/{execution}/plan": "/executions/{execution}/restart",
		"/v1/executions/{execution}/redrive": "/executions/{execution}/redrive", "/v1/executions/{execution}/restart": "/executions/{execution}/restart",
		"/v1/executions/{execution}/stop": "/executions/{execution}/stop", "/v1/groups/{group}/cancel": "/groups/{group}/cancel", "/v1/jobs/{job}/plan": "/jobs/{job}/run", "/v1/jobs/{job}/run": "/jobs/{job}/run",
		"/v1/recover": "/recover", "/v1/settings/{name}": "/settings/{name}", "/v1/tasks/{task}/cancel": "/tasks/{task}/cancel", "/v1/tasks/{task}/rerun": "/tasks/{task}/rerun",
	}
}

// Every operation that acts has a form, or docs/howto/console.md says why it has none.
func TestEveryOperationThatActsHasAFormOrAReason(t *testing.T) {
	t.Parallel()
	document, below := operationsAndReasons(t)
	forms, shown := console.Forms(), formsOf()
	for path, methods := range document {
		if _, acts := methods["post"]; !acts {
			continue
		}
		form, has := shown[path]
		require.NotEqual(t, has, strings.Contains(below, "`POST "+path+"`"), "POST %s needs a form in formsOf, or a line in docs/howto/console.md", path)
		if has {
			require.Contains(t, forms, form, path)
		}
		delete(shown, path)
	}
	require.Empty(t, shown, "operations that are no longer there")
}

// Every operation that reads has a page, or docs/howto/console.md says why it has none.
func TestEveryOperationThatReadsHasAPageOrAReason(t *testing.T) {
	t.Parallel()
	document, below := operationsAndReasons(t)
	reasons := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `GET (/v1/[^`]*)` \\| (.{10,}) \\|$").FindAllStringSubmatch(below, -1) {
		reasons[row[1]] = true
	}
	patterns, pages := console.Patterns(), pagesOf()
	for path, methods := range document {
		if _, reads := methods["get"]; !reads {
			continue
		}
		page, shown := pages[path]
		require.NotEqual(t, shown, reasons[path], "GET %s needs a page in pagesOf, or a line in docs/howto/console.md", path)
		if shown {
			require.Contains(t, patterns, page, path)
		}
		delete(pages, path)
		delete(reasons, path)
	}
	require.Empty(t, pages, "operations that are no longer there")
	require.Empty(t, reasons, "operations that are no longer there")
}
