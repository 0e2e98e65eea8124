package console_test

import (
	"html"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// payloads are texts that must be inert and visible wherever they come from.
func payloads() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</title><script>alert(1)</script>`, `</svg><script>alert(1)</script>`,
		`</textarea><u>`, `<!-- `, `--><u>`, `]]><u>`, `<svg onload=alert(1)>`, `<a href="javascript:alert(1)">x</a>`, `javascript:alert(1)`, `data:text/html,<u>`, `//evil.example/x`,
		`{{.}}`, `{{template "page" .}}`, `${7*7}`, `#{7*7}`, `%{7*7}`, `<%= 7*7 %>`, `&lt;b&gt;`, `&#60;b&#62;`, `&amp;`, "a\u202eb", "a\u2066b\u2069", "a\u200fb", "a\u200bb", "\ufeffa",
		"a\x1b[31mb", "a\rb", "a\nb", "a\tb", "a\x7fb", `'; drop table x; --`, `../../etc/passwd`, `style="position:fixed"`, `<style>*{display:none}</style>`, `<base href=//evil.example>`,
		`<meta http-equiv=refresh content=0>`, `<iframe src=//evil.example>`, `<form action=//evil.example>`, `hx-get="//evil.example"`, `<div hx-get=//evil.example hx-trigger=load>`,
		"`${x}`", `\u003cscript\u003e`, "a\u2028b", "ａ＜ｂ＞", strings.Repeat("<", 5000), strings.Repeat("a ", 60000),
	}
}

func TestHostileTextsAreInertAndVisible(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		for i, payload := range payloads() {
			given := payload
			if len(given) > 2000 {
				given = given[:2000]
			}
			if strings.ContainsAny(given, "$\n\r") {
				continue // of the job file's own expressions, or refused as a parameter
			}
			id := text(s.run("fails", map[string]string{"text": given}))
			paths := []string{"", "/results"}
			if i < 5 {
				paths = append(paths, "/definition", "/audit", "/compare")
			}
			for _, path := range paths {
				got := s.get("/executions/" + id + path).is(http.StatusOK).clean()
				requireInert(t, got, i)
			}
		}
		for _, path := range []string{"/", "/executions", "/jobs", "/jobs/fails"} {
			requireInert(t, s.get(path).is(http.StatusOK).clean(), -1)
		}
		for i, payload := range payloads() {
			if !utf8.ValidString(payload) || len(payload) > 1000 {
				continue
			}
			accepted, err := s.app.Tasks.Submit(t.Context(), task.Submission{Title: payload, Tasks: []task.Spec{{Type: "shell", Title: payload, Payload: raw(t, map[string]string{"command": payload})}}})
			if err != nil {
				continue // refused: it is stored nowhere
			}
			for _, path := range []string{"/tasks/" + text64(int64(accepted.Tasks[0])), "/groups/" + text64(int64(accepted.Group))} {
				requireInert(t, s.get(path).is(http.StatusOK).clean(), i)
			}
		}
		requireInert(t, s.get("/tasks").is(http.StatusOK).clean(), -1)
		requireInert(t, s.get("/groups").is(http.StatusOK).clean(), -1)
	})
}

// Texts of the address are texts of others, too.
func TestHostileAddressesAreInertAndVisible(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	id := text(s.run("load", nil))
	for i, payload := range payloads() {
		if len(payload) > 1000 {
			continue
		}
		value := strings.NewReplacer("%", "%25", "+", "%2B", "&", "%26", "#", "%23", " ", "%20", "\n", "%0A", "\r", "%0D", "\x1b", "%1B", "\x7f", "%7F", "\t", "%09", `"`, "%22", "<", "%3C", ">", "%3E", "`", "%60", "{", "%7B", "}", "%7D", "\\", "%5C", ";", "%3B", "'", "%27").Replace(payload)
		for _, path := range []string{"/executions?job=", "/executions?statuses=", "/find?q=", "/audit?actor=", "/?tz=", "/executions/" + id + "?element=", "/executions/" + id + "/skips?step=", "/executions/" + id + "/compare?with=", "/events?topic=", "/tasks?type="} {
			got := s.get(path + value)
			require.Less(t, got.status, http.StatusInternalServerError, got.path)
			if got.status != http.StatusSeeOther {
				requireInert(t, got.clean(), i)
			}
		}
		got := s.get("/jobs/" + strings.ReplaceAll(value, "/", "%2F"))
		require.Less(t, got.status, http.StatusInternalServerError)
	}
}

// requireInert: the walk over the tags has found none of the payload's; no sign of control or direction is
// left.
func requireInert(t testing.TB, got answer, payload int) {
	t.Helper()
	for _, r := range got.text {
		control := r < ' ' && r != '\n' && r != '\t' || r == '\x7f'
		direction := r >= '\u200b' && r <= '\u200f' || r >= '\u2028' && r <= '\u202e' || r >= '\u2060' && r <= '\u206f' || r == '\ufeff'
		require.False(t, control || direction, "%s: payload %d: %U", got.path, payload, r)
	}
	for _, evil := range []string{"<script>", "<img", "<u>", "<iframe", "<base", "<form action=//", "<div hx-get", "onload=", "<style"} {
		if strings.HasPrefix(evil, "<") {
			require.NotContains(t, got.text, evil, "%s: payload %d", got.path, payload)
		}
	}
}

func TestSecretsAreMaskedInTextsAndAttributes(t *testing.T) {
	t.Parallel()
	hide := func(text string) string { return strings.ReplaceAll(text, `s3cr&t"x`, "***") }
	page := `<p title="` + html.EscapeString(`a s3cr&t"x b`) + `">` + html.EscapeString(`see s3cr&t"x <b>`) + `</p>`
	require.Equal(t, `<p title="a *** b">see *** &lt;b&gt;</p>`, string(console.Inert([]byte(page), hide)))
	require.Equal(t, "<p>a␀b\ufffdc\n\td</p>", string(console.Inert([]byte("<p>a\x00b\xffc\n\td</p>"), nil)))
}
