package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/task"
)

func text(id core.JobExecutionID) string { return strconv.FormatInt(int64(id), 10) }

func TestAFailedExecutionTellsWhyWhatIsCommittedAndWhatARestartDoes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.run("load", nil)
		first := s.run("load", map[string]string{"day": "2026-11-23", "input": filepath.Join(s.dir, "bad.csv")})
		now := s.get("/").is(http.StatusOK).clean().says("2 need you", "1 skipped item", `href="/executions/`+text(first)+`"`)
		require.Contains(t, now.text, "<title>Now: 2 need you, 0 running · Surfin</title>")
		page := s.get("/executions/" + text(first)).is(http.StatusOK).clean()
		page.says("<title>load "+text(first)+": FAILED · Surfin</title>", "Execution "+text(first)+" of job load failed", "bad.csv:7", "skip limit of 3 exceeded",
			"A restart passes table", "surfin restart "+text(first), "2026-11-23", "<svg")
		require.Contains(t, plain(page.text), "committed up to line 3 of")
		for path, want := range map[string]string{
			"/definition": "create table if not exists loaded", "/audit": "STARTED -&gt; FAILED", "/results": "skip limit of 3 exceeded", "/compare": "rows a second",
			"/skips": "Other attempts", "/timeline": "Of ", "/throughput": "sample", "/log": "text", "/parts": "No step of this execution has partitions.", "/tasks": "No step of this execution has tasks",
		} {
			got := s.get("/executions/" + text(first) + path).is(http.StatusOK).clean()
			if path != "/skips" {
				got.says(want)
			}
		}
		require.Contains(t, now.text, `<a href="/executions/`+text(first)+`#why">what it does</a>`)
		page.says(`id="why"`, `/tasks" class="quiet" title="nothing there">tasks</a>`)
		s.get("/executions/1").says(`skips <span class="quiet">1</span></a>`)
		s.get("/jobs/load").is(http.StatusOK).clean().says("What to do now", "surfin restart "+text(first), "#why")
		s.get("/executions/"+text(first)+"/compare").says("error of execution "+text(first)+": ", "bad.csv:7")
		log := s.get("/executions/" + text(first) + "/log").is(http.StatusOK)
		require.NotContains(t, log.text, "type=*")
		marked := s.get("/executions/" + text(first) + "/definition?element=load")
		marked.is(http.StatusOK).clean().says(`id="at"`, "step load FAILED: ", `class="failed selected"`)
		s.get("/executions/"+text(first)+"?element=load").is(http.StatusOK).clean().says(`id="element"`, "reader csv", "load.yaml:")
		s.get("/executions/" + text(first) + "?element=lode").is(http.StatusUnprocessableEntity).clean().says("this flow has no such element")
	})
}

func TestPartsAndSkipsHaveTheirPages(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		parts := text(s.run("parts", nil))
		s.get("/executions/"+parts+"/parts").is(http.StatusOK).clean().says("3 partitions of step load", "c.csv", "FAILED")
		left := s.get("/executions/" + parts + "/parts?left=true").is(http.StatusOK).clean().says("c.csv")
		require.NotContains(t, left.text, "a.csv")
		s.get("/executions/" + parts + "/parts?order=size").is(http.StatusUnprocessableEntity).clean().says("allowed: number, duration, status")
		skipped := text(s.run("load", nil))
		list := s.get("/executions/"+skipped+"/skips").is(http.StatusOK).clean().says("in.csv:4", "parse")
		number := regexp.MustCompile(`href="(/skips/\d+)"`).FindStringSubmatch(list.text)
		require.NotNil(t, number, list.text)
		s.get(number[1]).is(http.StatusOK).clean().says("Skipped item", "in.csv:4", "is not an int")
	})
}

// Every page is there, whatever its values are.
func TestEveryRouteIsAPage(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		id := text(s.run("load", nil))
		sub := task.Submission{Title: "one", Tasks: []task.Spec{{Type: "shell", Payload: raw(t, map[string]any{"command": "echo x", "env": map[string]string{"KEY": "hidden"}})}}}
		accepted, err := s.app.Tasks.Submit(t.Context(), sub)
		require.NoError(t, err)
		values := strings.NewReplacer("{execution}", id, "{job}", "load", "{skip}", "1", "{task}", strconv.FormatInt(int64(accepted.Tasks[0]), 10),
			"{group}", strconv.FormatInt(int64(accepted.Group), 10), "{$}", "")
		wrong := []string{"0", "-1", "x", "999999999999", "99999999999999999999", "%2e%2e", "%00", "%ff", "a%2Fb", "%22%3E%3Cscript%3E", strings.Repeat("9", 300)}
		for _, pattern := range console.Patterns() {
			path := values.Replace(pattern)
			s.get(path).is(http.StatusOK).clean()
			require.True(t, strings.HasPrefix(s.get(path, "HX-Request", "true").text, "<main"), path)
			s.call(viewerToken, http.MethodGet, path)
			for _, query := range []string{"tz=Europe/Berlin", "tz=../x", "theme=dark", "theme=x", "before=x", "after=-1", "since=yesterday", "statuses=A,B", "state=x", "step=x", "with=0", "from=999999999999999999", "q=%3Cb%3E", "a=%ff", "element=x", "act=x", "left=x", "order=x", "phase=x"} {
				got := s.get(path + "?" + query)
				require.Less(t, got.status, http.StatusInternalServerError, path+"?"+query)
				got.clean()
			}
			if !strings.Contains(pattern, "{") || pattern == "/{$}" {
				continue
			}
			for _, value := range wrong {
				got := s.get(regexp.MustCompile(`{\w+}`).ReplaceAllLiteralString(pattern, value))
				require.True(t, got.status == http.StatusNotFound || got.status == http.StatusBadRequest || got.status == http.StatusMovedPermanently || got.status == http.StatusTemporaryRedirect, "%s: %d", got.path, got.status)
			}
		}
		require.NotContains(t, s.log.String(), "level=ERROR")
	})
}

func TestAnUnknownPageNamesWhatIsNear(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	id := text(s.run("load", nil))
	s.get("/executions/9999").is(http.StatusNotFound).clean().says("Not found", `href="/executions/`+id+`"`)
	s.get("/jobs/lod").is(http.StatusNotFound).clean().says("There is no job lod.", `href="/jobs/load"`)
	s.get("/job").is(http.StatusNotFound).clean().says(`href="/jobs"`)
	s.get("/executions/" + id + "/part").is(http.StatusNotFound).clean().says(`href="/executions/` + id + `/parts"`)
	s.call(operatorToken, http.MethodPost, "/jobs").is(http.StatusMethodNotAllowed).clean()
	s.get("/executions?statuses=NO,FAILED&job=load&exit=a").is(http.StatusUnprocessableEntity).clean().says("statuses=NO: no such status", "allowed: STARTING", "job: load")
}

func TestNothingIsShownWithoutAToken(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	id := text(s.run("load", nil))
	for _, pattern := range console.Patterns() {
		path := strings.NewReplacer("{execution}", id, "{job}", "load", "{$}", "").Replace(pattern)
		for _, token := range []string{"", "forged"} {
			got := s.call(token, http.MethodGet, path).is(http.StatusUnauthorized).clean()
			require.NotContains(t, got.text, "load.yaml")
			require.NotContains(t, got.text, ">load<")
		}
		s.call(viewerToken, http.MethodPost, path).is(http.StatusForbidden).clean()
	}
	s.call(viewerToken, http.MethodGet, "/audit").is(http.StatusForbidden).clean()
	viewer := s.call(viewerToken, http.MethodGet, "/").is(http.StatusOK).clean().says("read only, as wall")
	require.NotContains(t, viewer.text, `href="/audit"`)
	s.call(operatorToken, http.MethodGet, "/").is(http.StatusOK).clean().says(">anna<", `href="/audit"`)
}

func TestTheSignInSaysWhatIsWrongAtItsField(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	const back = "/login?next=%2Fexecutions%3Ftext%3Da%2Bb"
	s.call("", http.MethodGet, back).is(200).clean().says("<h1>Sign in</h1>", `action="/login?next=%2fexecutions%3ftext%3da%2bb"`)
	s.call("", http.MethodGet, back, "Cookie", "surfin_session=old").is(200).clean().says("<h1>The session is over: sign in again</h1>")
	s.get("/login").is(200).clean().says("<h1>Signed in as anna</h1>")
	wrong := s.call("", http.MethodPost, back).is(401).clean().says(`aria-invalid="true" aria-describedby="wrong about"`, `<p id="wrong" class="error" role="alert">`, "the token belongs to no client")
	require.NotContains(t, wrong.text, "<script")
	s.call("", http.MethodPost, back, "Origin", "https://evil.example.com").is(403).clean().says("a page of another site must not request this")
	s.call("", http.MethodGet, "/login?next=%22%3E%3Cscript%3E").is(200).clean()
	s.call("", http.MethodGet, "/login?code=once").is(403).clean().says("the link was used")
}

// Rule SE6.
func TestAViewerSeesNoSecretsOfATask(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	accepted, err := s.app.Tasks.Submit(t.Context(), runtime.SubmitRequest{Title: "one", Tasks: []*runtime.SpecForm{{
		Type: "shell", Payload: raw(t, map[string]any{"command": "echo x", "env": map[string]string{"KEY": "hiddenvalue"}}),
	}}}.Submission())
	require.NoError(t, err)
	path := "/tasks/" + strconv.FormatInt(int64(accepted.Tasks[0]), 10)
	s.get(path).is(http.StatusOK).says("hiddenvalue")
	require.NotContains(t, s.call(viewerToken, http.MethodGet, path).is(http.StatusOK).text, "hiddenvalue")
}

func TestThePaletteFindsParametersAndErrors(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	s.run("load", map[string]string{"day": "2026-11-21"})
	s.get("/find?q=2026-11-21", "HX-Request", "true").is(200).says("executions with day=2026-11-21", `href="/executions?param=day%3A2026-11-21"`)
	require.NotContains(t, s.get("/find?q=2026-11-20", "HX-Request", "true").is(200).text, "day=")
	s.get("/find?q=no%3A%22x").is(200).clean().says("Found for no:&#34;x", `href="/executions?param=no%3A%22x"`)
	s.get("/find?q=disk+full").is(200).clean().says("an error may contain it", `href="/executions?text=disk&#43;full"`)
}

func TestTimesAreInTheZoneThatTheHeaderNames(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	id := text(s.run("load", nil))
	berlin := s.get("/executions/"+id+"?tz=Europe/Berlin").is(http.StatusOK).clean().says("Times: Europe/Berlin", "Z\">")
	require.Contains(t, berlin.header.Get("Set-Cookie"), "surfin_tz=Europe~Berlin")
	require.Contains(t, berlin.header.Get("Set-Cookie"), "SameSite=Strict")
	s.get("/", "Cookie", "surfin_tz=Asia~Tokyo").is(http.StatusOK).clean().says("Times: Asia/Tokyo")
	s.get("/", "Cookie", "surfin_tz=Nowhere; surfin_theme=x").is(http.StatusOK).clean().says("Times: UTC", `data-theme="system"`)
	s.get("/?tz=Nowhere/Else").is(http.StatusUnprocessableEntity).clean().says("tz=Nowhere/Else: no such time zone", "Times: UTC")
}

func TestStaticFilesAreKeptForEver(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	page := s.get("/", "Accept-Encoding", "gzip").is(http.StatusOK)
	unzip, err := gzip.NewReader(strings.NewReader(page.text))
	require.NoError(t, err)
	whole, err := io.ReadAll(unzip)
	require.NoError(t, err)
	size := len(page.text)
	files := regexp.MustCompile(`(?:src|href)="(/static/[^"#]+)`).FindAllStringSubmatch(string(whole), -1)
	seen := map[string]bool{}
	for _, file := range files {
		if seen[file[1]] {
			continue
		}
		seen[file[1]] = true
		got := s.call("", http.MethodGet, file[1], "Accept-Encoding", "gzip").is(http.StatusOK)
		require.Equal(t, "public, max-age=31536000, immutable", got.header.Get("Cache-Control"))
		require.Regexp(t, `\.[0-9a-f]{12}\.(js|css|svg)$`, file[1])
		size += len(got.text)
	}
	require.LessOrEqual(t, len(seen)+1, 8, "requests of the first visit")
	require.LessOrEqual(t, size, 80<<10, "bytes of the first visit")
	s.get("/static/console.000000000000.css").is(http.StatusNotFound)
	script, err := os.ReadFile("static/console.js")
	require.NoError(t, err)
	require.LessOrEqual(t, len(script), 12<<10)
}

func text64(n int64) string { return strconv.FormatInt(n, 10) }
