package console_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/humanize"
	"github.com/surfin-batch/surfin/internal/picture"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

// payloads are texts that must be inert and visible wherever they come from.
func payloads() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `" autofocus onfocus="alert(1)`, `</title><script>alert(1)</script>`,
		`</svg><script>alert(1)</script>`, `</textarea><u>`, `</pre></code></td></table><u>`, `<!-- `, `--><u>`, `]]><u>`, `<![CDATA[<u>]]>`, `<?php echo 1 ?>`, `<svg onload=alert(1)>`,
		`<a href="javascript:alert(1)">x</a>`, `javascript:alert(1)`, `JaVaScRiPt:alert(1)`, "java\tscript:alert(1)", `data:text/html,<u>`, `vbscript:x`, `//evil.example/x`, `https://evil.example/`,
		`\\evil.example\x`, `{{.}}`, `{{template "page" .}}`, `{{define "main"}}x{{end}}`, `$${7*7}`, `#{7*7}`, `%{7*7}`, `<%= 7*7 %>`, `%s%n%!d(x)`, `&lt;b&gt;`, `&#60;b&#62;`, `&amp;`, `&quot;&apos;`,
		"a\u202eb", "a\u2066b\u2069", "a\u200fb", "a\u200bb", "\ufeffa", "a\u061cb", "a\x1b[31mb", "a\rb", "a\nb", "a\tb", "a\x7fb", "a\u0085b", "a\u2028b", `'; drop table x; --`, `../../etc/passwd`,
		`<u style="position:fixed">`, `<style>*{display:none}</style>`, `<base href=//evil.example>`, `<meta http-equiv=refresh content=0>`, `<iframe src=//evil.example>`,
		`<form action=//evil.example><button>`, `hx-get="//evil.example"`, `<div hx-get=//evil.example hx-trigger=load>`, `<input name=token autofocus>`, "`${x}`", `\u003cscript\u003e`, `ａ＜ｂ＞`,
		`<u><u><u>` + strings.Repeat("<", 5000), strings.Repeat("a ", 60000), strings.Repeat("<u>", 350_000), "a\x00b", "a\xffb", "\xed\xa0\x80", "a\xc0\xafb", "\u0301\u0301\u0301\u0301",
	}
}

// hostile is a text on its way into a page.
type hostile struct {
	*scene
	number int
	text   string
}

// place is a way of texts from outside into the history. put returns the pages that show the text, and
// nothing if it was refused there.
type place struct {
	name string
	put  func(h hostile) (paths []string)
}

// places are the engine's; columns has the others.
func places() []place {
	return []place{
		{"parameters", hostile.asParameter}, {"job files", hostile.asJobFile}, {"files, rows and outputs", hostile.asData}, {"tasks", hostile.asTask}, {"addresses", hostile.asAddress},
	}
}

func TestHostileTextsAreInertAndVisible(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(payloads()), 60)
	for _, place := range places() {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, url string) {
				s := newScene(t, url)
				tried, taken := 0, 0
				for i, payload := range payloads() {
					if isFew(url) && i%4 > 0 && i < len(payloads())-8 {
						continue
					}
					paths := place.put(hostile{s, i, payload})
					for k, path := range paths {
						s.awaitShown(path, payload)
						if k == i%len(paths) {
							requireHarmless(t, s.get(unshared(path, i), "HX-Request", "true"), payload, true)
						}
					}
					tried, taken = tried+1, taken+min(len(paths), 1)
				}
				require.Greater(t, 2*taken, tried, "most payloads are accepted here")
				for _, path := range []string{"/", "/executions", "/jobs", "/tasks", "/groups", "/schedules", "/audit", "/workers", "/events", "/settings"} {
					requireHarmless(t, s.get(path), "", false)
				}
				require.NotContains(t, s.log.String(), "level=ERROR")
			})
		})
	}
}

// unshared is an address of its own: watchers of one address share a fragment, which can be a second old.
func unshared(path string, n int) string {
	if strings.Contains(path, "?") {
		return fmt.Sprintf("%s&u=%d", path, n)
	}
	return fmt.Sprintf("%s?u=%d", path, n)
}

// isFew leaves out payloads: of PostgreSQL, because pages are the same and only texts that a database may
// refuse differ, and of slow runs.
func isFew(url string) bool { return strings.HasPrefix(url, "postgres") || testengine.Few() }

func (h hostile) asParameter() []string {
	e, err := h.app.Run(h.t.Context(), runRequest(filepath.Join(h.dir, "fails.yaml"), map[string]string{"text": h.text}))
	if err != nil {
		return nil // refused: it is stored nowhere
	}
	at := "/executions/" + text(e.ID)
	return []string{at, at + "/results", at + "/log", "/executions?job=fails"}
}

// asJobFile writes the text wherever the file of a job takes any.
func (h hostile) asJobFile() []string {
	quoted := strings.ReplaceAll(jsonText(h.t, h.text), "${", "$${")
	name := fmt.Sprintf("file%d", h.number)
	file := fmt.Sprintf("job: %s\ndescription: %s\nparameters:\n  p: {type: string, default: %s, description: %s, identifying: false}\nflow:\n- step: says\n  tasklet: {fail: {message: %s, exit: %s}}\n",
		name, quoted, strings.ReplaceAll(quoted, "$${", "${"), quoted, quoted, short(quoted))
	if plain := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\ufeff' {
			return ' '
		}
		return r
	}, h.text); utf8.ValidString(plain) {
		file += "# " + plain + "\n"
	}
	h.write(name+".yaml", file)
	e, err := h.app.Run(h.t.Context(), runRequest(filepath.Join(h.dir, name+".yaml"), nil))
	if err != nil { // the file is not valid: it is shown with its mistakes
		requireHarmless(h.t, h.get("/jobs/"+name), h.text, false)
		require.NoError(h.t, os.Remove(filepath.Join(h.dir, name+".yaml")))
		return nil
	}
	at := "/executions/" + text(e.ID)
	return []string{at, at + "/definition", at + "/definition.txt", at + "/results", at + "/compare", "/jobs/" + name}
}

// asData is in a name of a file, in a row, and in the outputs of a command.
func (h hostile) asData() []string {
	name := "plain.csv"
	if !strings.ContainsAny(h.text, "/\x00") && len(h.text) < 200 && utf8.ValidString(h.text) {
		name = h.text + ".csv"
	}
	row := `"` + strings.ReplaceAll(h.text, `"`, `""`) + `"`
	h.write("rows/"+name, "id,name\n1,a\n"+row+",b\n")
	h.write("rows/said", h.text)
	h.write("data.yaml", `job: data
parameters: {path: {type: path}, n: {type: int}}
flow:
- {step: load, chunk: {size: 2, skip: {limit: 9}, reader: {csv: {path: "${params.path}", item: {id: int, name: string}}}, writer: {jsonl: {path: out.jsonl}}}}
- {step: says, tasklet: {shell: {script: "cat rows/said; cat rows/said >&2; exit 3"}}}
`)
	e, err := h.app.Run(h.t.Context(), runRequest(filepath.Join(h.dir, "data.yaml"), map[string]string{"path": filepath.Join(h.dir, "rows", name), "n": fmt.Sprint(h.number)}))
	if err != nil {
		return nil
	}
	at := "/executions/" + text(e.ID)
	list := h.get(at + "/skips")
	paths := []string{at + "/skips", at + "/log", at + "/log.txt", at + "/skips.csv"}
	if item := regexp.MustCompile(`href="(/skips/\d+)"`).FindStringSubmatch(list.text); item != nil {
		paths = append(paths, item[1], item[1]+"/item.txt")
	}
	if name != "plain.csv" {
		paths = append(paths, at)
	}
	return paths
}

func (h hostile) asTask() []string {
	accepted, err := h.app.Tasks.Submit(h.t.Context(), task.Submission{Title: h.text, Tasks: []task.Spec{{Type: "shell", Title: h.text, Payload: raw(h.t, map[string]string{"command": h.text})}}})
	if err != nil {
		return nil
	}
	return []string{"/tasks/" + text64(int64(accepted.Tasks[0])), "/groups/" + text64(int64(accepted.Group)), "/groups"}
}

// asAddress is in a query and in a path.
func (h hostile) asAddress() []string {
	if len(h.text) > 1000 {
		return nil
	}
	if h.number == 0 {
		h.run("load", nil)
	}
	value := url.QueryEscape(h.text)
	var shown []string
	for _, path := range []string{
		"/executions?job=", "/executions?statuses=", "/executions?param=", "/executions?text=", "/executions?since=", "/find?q=", "/audit?actor=", "/?tz=", "/?theme=", "/?" + value + "=",
		"/executions/1?element=", "/executions/1/skips?step=", "/executions/1/compare?with=", "/executions/1/log?text=", "/executions/1/log?level=", "/executions/1/parts?order=", "/events?topic=", "/tasks?type=", "/tasks?state=",
	} {
		got := h.get(path + value)
		require.Less(h.t, got.status, http.StatusInternalServerError, got.path)
		if got.status != http.StatusSeeOther {
			requireHarmless(h.t, got, "", false)
		}
		if got.status == http.StatusUnprocessableEntity && !strings.Contains(h.text, "\n") && !strings.HasPrefix(h.text, "%") {
			shown = append(shown, path+value)
		}
	}
	for _, path := range []string{"/jobs/", "/executions/", "/tasks/", "/skips/", "/", "/executions/1/", "/static/"} {
		got := h.get(path + url.PathEscape(h.text))
		require.Less(h.t, got.status, http.StatusInternalServerError, got.path)
	}
	return shown
}

// awaitShown checks a page that shows a payload: lines of a log are stored a moment later.
func (s *scene) awaitShown(path, payload string) {
	s.t.Helper()
	got := s.get(path)
	for late := time.Now().Add(10 * time.Second); strings.Contains(path, "/log") && !shows(decoded(s.t, got), payload) && time.Now().Before(late); got = s.get(path) {
		time.Sleep(50 * time.Millisecond)
	}
	requireHarmless(s.t, got, payload, true)
}

// requireHarmless checks a page, or a download: nothing of a payload acts, no sign of control or direction
// is left, and the payload can be read if it must be there.
func requireHarmless(t testing.TB, got answer, payload string, visible bool) {
	t.Helper()
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		require.Contains(t, got.header.Get("Content-Disposition"), "attachment", got.path)
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"), got.path)
		require.True(t, !visible || shows(decoded(t, got), payload), "%s: %.50q\n%.3000s", got.path, payload, got.text)
		return
	}
	got.clean()
	require.Less(t, len(got.text), 4<<20, "%s: a page of megabytes", got.path)
	at := strings.IndexFunc(got.text, func(r rune) bool {
		control := r < ' ' && r != '\n' && r != '\t' || r >= '\x7f' && r <= '\u009f'
		direction := r == '\u061c' || r >= '\u200b' && r <= '\u200f' || r >= '\u2028' && r <= '\u202e' || r >= '\u2060' && r <= '\u206f' || r == '\ufeff'
		return control || direction
	})
	require.Less(t, at, 0, "%s: payload %.50q: %.9q", got.path, payload, got.text[max(0, at):])
	if seen := decoded(t, got); visible && !shows(seen, payload) {
		require.Fail(t, "the payload is not visible", "%s (%d): %.50q\n%.20000s", got.path, got.status, payload, seen)
	}
}

// shows reports whether a page has the beginning of a text, in one line, with its lines, or quoted as in errors.
func shows(page, payload string) bool {
	first, _, _ := strings.Cut(payload, "\n")
	if len(first) > 200 {
		first = first[:200]
	}
	asJSON, _ := json.Marshal(first) //nolint:errcheck,errchkjson // a text
	for _, text := range []string{humanize.OneLine(first), first, strconv.Quote(first), string(asJSON)} {
		if strings.Contains(page, unquoted(strings.TrimSuffix(humanize.Clip(picture.Visible(text), 24), "…"))) {
			return true
		}
	}
	return false
}

// unquoted is a text without quotes, which are doubled or escaped in rows and errors, and with one sign
// for characters that are shown as signs.
func unquoted(text string) string {
	text = strings.NewReplacer(`"`, "", `\`, "").Replace(text)
	text = strings.Map(func(r rune) rune {
		if r >= '\u2400' && r <= '\u2421' {
			return '\ufffd'
		}
		return r
	}, text)
	text = regexp.MustCompile("\ufffd+").ReplaceAllString(text, "\ufffd") // a sign for each byte, or for some
	return strings.Join(strings.Fields(text), " ")
}

// decoded are the texts of a download, or the texts and the values of the attributes of a page, as a reader gets them. It fails at
// elements and attributes that no page has.
func decoded(t testing.TB, got answer) string {
	t.Helper()
	if !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
		return unquoted(picture.Visible(strings.ReplaceAll(got.text, "\n", " ")))
	}
	d := xml.NewDecoder(strings.NewReader(got.text))
	d.Strict, d.Entity = false, xml.HTMLEntity
	var all strings.Builder
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, got.path)
		switch token := token.(type) {
		case xml.CharData:
			all.Write(token)
		case xml.StartElement:
			if !strings.Contains(got.path, "/report.html") || !slices.Contains([]string{"style", "symbol", "circle"}, token.Name.Local) { // it has its own style and icons
				require.Contains(t, elements(), token.Name.Local, got.path)
			}
			for _, a := range token.Attr {
				name := a.Name.Local
				if strings.HasPrefix(name, "hx-") && !slices.Contains([]string{"hx-get"}, name) || !strings.HasPrefix(name, "hx-") {
					all.WriteString(" " + a.Value + " ")
					continue
				}
				require.Regexp(t, `^/[^/\\]`, a.Value, "%s: %s", got.path, name)
			}
		}
	}
	return unquoted(all.String())
}

// elements are the elements of the templates and pictures.
func elements() []string {
	return strings.Fields(`br hr wbr i datalist fieldset legend output optgroup aside article search html head meta title link script body header nav main section footer dialog form input button select option label textarea a span p b strong em h1 h2 h3 ul ol li dl div dt dd
		table caption thead tbody tr th td pre code kbd time progress meter details summary img noscript abbr small sup figure figcaption mark
		svg g path rect circle ellipse line polyline polygon text tspan use defs marker clipPath pattern desc mask`)
}

func jsonText(t testing.TB, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	return string(quoted)
}

// short is a quoted text as an exit code may be.
func short(quoted string) string {
	if len(quoted) > 60 {
		return `"LONG"`
	}
	return quoted
}

func TestSecretsAreMaskedInTextsAndAttributes(t *testing.T) {
	t.Parallel()
	hide := func(text string) string { return strings.ReplaceAll(text, `s3cr&t"x`, "***") }
	page := `<p title="` + html.EscapeString(`a s3cr&t"x b`) + `">` + html.EscapeString(`see s3cr&t"x <b>`) + `</p>`
	require.Equal(t, `<p title="a *** b">see *** &lt;b&gt;</p>`, string(console.Inert([]byte(page), hide)))
	require.Equal(t, "<p>a␀b\ufffdc\n\td</p>", string(console.Inert([]byte("<p>a\x00b\xffc\n\td</p>"), nil)))
}
