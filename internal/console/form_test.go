package console_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/console"
	"github.com/surfin-batch/surfin/internal/runtime"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// formField is a field of a form, or a button with a name.
type formField struct {
	name, kind, value string
	checked           bool
	options           []string
}

// typed reports whether a person enters the text of the field, and a refusal must keep it.
func (f formField) typed() bool { return slices.Contains([]string{"text", "date", "textarea"}, f.kind) }

// form are the fields of the form of a page, as a browser reads them; nil if it has none.
func (a answer) form() []formField {
	a.t.Helper()
	_, form, found := strings.Cut(a.text, `<form class="act"`)
	if !found {
		return nil
	}
	form, _, _ = strings.Cut(form, "</form>")
	d := xml.NewDecoder(strings.NewReader(`<form class="act"` + form))
	d.Strict, d.Entity = false, xml.HTMLEntity
	list, text, option := []formField{}, "", map[string]string{}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(a.t, err, a.path)
		switch token := token.(type) {
		case xml.StartElement:
			text = ""
			at := map[string]string{}
			for _, attribute := range token.Attr {
				at[attribute.Name.Local] = attribute.Value
			}
			_, checked := at["checked"]
			switch kind := token.Name.Local; {
			case kind == "option":
				option = at
			case slices.Contains([]string{"input", "textarea", "select", "button"}, kind) && at["name"] != "":
				if kind == "input" {
					kind = cmp.Or(at["type"], "text")
				}
				list = append(list, formField{name: at["name"], kind: kind, value: at["value"], checked: checked})
			}
		case xml.CharData:
			text += string(token)
		case xml.EndElement:
			if len(list) == 0 {
				continue
			}
			last := &list[len(list)-1]
			switch token.Name.Local {
			case "textarea":
				last.value = strings.TrimPrefix(text, "\n")
			case "option":
				value, has := option["value"]
				if !has {
					value = text
				}
				if _, selected := option["selected"]; selected || len(last.options) == 0 {
					last.value = value
				}
				last.options = append(last.options, value)
			}
		}
	}
}

// fieldsOf are the values that a browser would send for the form of a page.
func (a answer) fieldsOf() url.Values {
	a.t.Helper()
	fields := a.form()
	require.NotNil(a.t, fields, "%s\n%s", a.path, a.text)
	values := url.Values{}
	for _, f := range fields {
		if f.kind != "button" && (f.kind != "checkbox" || f.checked) {
			values.Add(f.name, f.value)
		}
	}
	return values
}

func with(values url.Values, pairs ...string) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

func (s *scene) submit(path string, values url.Values, headers ...string) answer {
	s.t.Helper()
	return s.submitAs(operatorToken, path, values, headers...)
}

func (s *scene) submitAs(token, path string, values url.Values, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.at+path, strings.NewReader(values.Encode()))
	require.NoError(s.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.send(r, headers)
}

// upload submits a form with a file of edits.
func (s *scene) upload(path string, values url.Values, file string) answer {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, list := range values {
		for _, v := range list {
			require.NoError(s.t, form.WriteField(name, v))
		}
	}
	part, err := form.CreateFormFile("file", "edits.jsonl")
	require.NoError(s.t, err)
	_, err = part.Write([]byte(file))
	require.NoError(s.t, err)
	require.NoError(s.t, form.Close())
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.at+path, &body)
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+operatorToken)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return s.send(r, nil)
}

// leadsTo is the execution to which an act leads.
func (a answer) leadsTo() core.JobExecutionID {
	a.t.Helper()
	a.is(http.StatusSeeOther)
	n, err := strconv.ParseInt(strings.TrimPrefix(a.header.Get("Location"), "/executions/"), 10, 64)
	require.NoError(a.t, err, a.header.Get("Location"))
	return core.JobExecutionID(n)
}

func (s *scene) end(of core.JobExecutionID) core.Status {
	s.t.Helper()
	e, err := s.app.AwaitEnd(s.t.Context(), of)
	require.NoError(s.t, err)
	return e.Status
}

func TestAJobIsRunByItsFormOnceAndRestartedWithThePlanOfThePage(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.get("/jobs/load").is(http.StatusOK).clean().says(`href="/jobs/load/run"`)
		page := s.get("/jobs/load/run").is(http.StatusOK).clean().says(`name="params.day"`, `type="date"`)
		values := with(page.fieldsOf(), "params.input", "bad.csv", "params.day", "2026-11-27", "reason", "the first night")

		checked := s.submit("/jobs/load/run", with(values, "do", "check")).is(http.StatusOK).clean().says("It is a new instance.", "Step load (chunk)")
		require.Equal(t, "bad.csv", checked.fieldsOf().Get("params.input"))
		values = checked.fieldsOf()
		first := s.submit("/jobs/load/run", values).leadsTo()
		require.Equal(t, first, s.submit("/jobs/load/run", values).leadsTo(), "a double click, or a reload")
		require.Equal(t, core.StatusFailed, s.end(first))

		s.get("/executions/" + id(first)).is(http.StatusOK).clean().says(`href="/executions/` + id(first) + `/restart"`)
		plan := s.get("/executions/"+id(first)+"/restart").is(http.StatusOK).clean().says("What the restart does", "Step load (chunk)", "Restart execution "+id(first))
		other := s.submit("/executions/"+id(first)+"/restart", with(plan.fieldsOf(), "from", "start")).is(http.StatusOK).clean().says("Step table (tasklet): would run")
		require.Equal(t, "start", other.fieldsOf().Get("from"))
		require.Equal(t, "from=start", other.fieldsOf().Get("planned"))

		s.write("bad.csv", "id\n1\n2\na\nb\nc\n6\n")
		second := s.submit("/executions/"+id(first)+"/restart", plan.fieldsOf()).leadsTo()
		require.NotEqual(t, first, second)
		require.Equal(t, core.StatusFailed, s.end(second), "the file has changed")
		require.Equal(t, second, s.submit("/executions/"+id(first)+"/restart", plan.fieldsOf()).leadsTo(), "the same form again")
		changed := "/executions/" + id(second) + "/restart?accept_changes=true"
		third := s.submit("/executions/"+id(second)+"/restart", s.get(changed).is(http.StatusOK).clean().fieldsOf()).leadsTo()
		require.Equal(t, core.StatusCompleted, s.end(third))

		s.submit("/jobs/load/run", with(s.get("/jobs/load/run?like="+id(first)).fieldsOf(), "params.note", "kept")).is(http.StatusConflict).clean().
			says("complete", `value="kept"`, `value="2026-11-27"`)
	})
}

func TestAWrongValueIsShownAtItsFieldWithAllThatWasTyped(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	values := with(s.get("/jobs/load/run").fieldsOf(), "params.day", "tomorrow", "params.note", `<b>"x`, "reason", "why not")
	s.submit("/jobs/load/run", values).is(http.StatusUnprocessableEntity).clean().
		says(`href="#params.day"`, `aria-invalid="true"`, "autofocus", `value="tomorrow"`, `value="&lt;b&gt;&#34;x"`, `value="why not"`)
	s.submit("/jobs/lod/run", values).is(http.StatusNotFound).clean().says("job load")
	s.submit("/jobs/load/run", with(values, "params.note", "a\x00b")).is(http.StatusUnprocessableEntity).clean().says("NUL", `value="a␀b"`, `value="tomorrow"`, `value="why not"`)
}

func TestAnExecutionIsStoppedAndAbandonedByItsForms(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		running, err := s.app.Start(t.Context(), runRequest(filepath.Join(s.dir, "wait.yaml"), nil))
		require.NoError(t, err)
		at := "/executions/" + id(running.Execution().ID)
		stop := s.get(at + "/stop").is(http.StatusOK).clean().says("STOPPED then")
		s.submit(at+"/stop", stop.fieldsOf()).is(http.StatusSeeOther)
		s.end(running.Execution().ID)
		s.submit(at+"/stop", s.get(at+"/stop").fieldsOf()).is(http.StatusConflict).clean().says("nothing to stop")

		abandon := s.get(at + "/abandon").is(http.StatusOK).clean().says("never be restarted").fieldsOf()
		s.submit(at+"/abandon", abandon).is(http.StatusSeeOther)
		s.submit(at+"/restart", s.get(at+"/restart").is(http.StatusOK).clean().says("abandoned").fieldsOf()).is(http.StatusConflict).clean().says("abandoned")
	})
}

func TestSkippedRowsAreCorrectedAndRedrivenByTheirForm(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		s.write("in.csv", "id\n1\n2\nx\n4\ny\n")
		first := s.run("load", nil)
		at := "/executions/" + id(first) + "/redrive"
		s.get("/executions/" + id(first)).says(`href="/executions/` + id(first) + `/skips?left=true"`)
		s.get("/executions/" + id(first) + "/skips").says(`href="` + at)
		page := s.get(at).is(http.StatusOK).clean().says("<textarea", "x</textarea>", "y</textarea>")
		values := page.fieldsOf()
		numbers := regexp.MustCompile(`name="text\.(\d+)"`).FindAllStringSubmatch(page.text, -1)
		require.Len(t, numbers, 2)
		x, y := numbers[0][1], numbers[1][1]
		values["item"] = []string{x, y}

		replaced := s.submit(at, with(values, "text."+x, "x", "text."+y, "y", "find", "x", "replace", "3", "do", "replace")).is(http.StatusOK).clean()
		require.Regexp(t, `3</textarea>`, replaced.text)
		require.Regexp(t, `<form class="act"[^>]*><button [^>]*value="check"`, page.text, "Enter presses the first button")

		sent := with(values, "text."+x, "3", "text."+y, "typed", "do", "export")
		exported := s.submit(at, sent).is(http.StatusOK)
		require.Contains(t, exported.header.Get("Content-Disposition"), "attachment")
		require.Contains(t, exported.text, `"raw":"3"`)
		require.Contains(t, exported.text, `"raw":"typed"`)
		edits := strings.Split(strings.TrimSpace(exported.text), "\n")[0] + "\n"
		s.upload(at, with(values, "text."+x, "x", "text."+y, "typed", "do", "import"), edits+`{"id":99999,"raw":"5"}`).is(http.StatusOK).clean().
			says("3</textarea>", "typed</textarea>", "1 item of edits.jsonl filled in and chosen. 1 other item of the file: not on this page.", `name="use.`+x+`" value="true" aria-label="use item `+x+`" checked`)
		s.upload(at, with(values, "text."+x, "x", "text."+y, "typed", "do", "import"), edits+"{}\nnone\n").is(http.StatusUnprocessableEntity).clean().
			says("edits.jsonl:2: ", "edits.jsonl:3: not a line of an export", "x</textarea>", "typed</textarea>")
		s.upload(at, with(values, "do", "import"), `{"id":`+x+`,"item":{"id":3}}`).is(http.StatusUnprocessableEntity).clean().says("item " + x + ": the form takes its raw text")
		s.submit(at, with(values, "do", "import")).is(http.StatusUnprocessableEntity).clean().says("choose an export to import")

		values.Del("use." + y)
		second := s.submit(at, with(values, "text."+x, "3", "text."+y, "y", "do", "")).leadsTo()
		require.Equal(t, core.StatusCompleted, s.end(second))
		s.get("/executions/"+id(first)+"/skips").says("execution "+id(second), ">not yet<")
		redrive := s.get("/executions/"+id(second)).is(http.StatusOK).clean().says(`, a redrive of <a href="/executions/`+id(first)+`">`, "step load of execution "+id(first)+" (number 1)")
		require.NotContains(t, redrive.text, "run.redrive")
		s.get("/executions/"+id(first)+"/audit").is(http.StatusOK).clean().says("Acts on this instance", "anna (token)", `<a href="/executions/`+id(second)+`">`)
		s.submit(at, values).is(http.StatusSeeOther)
		values.Set("key", "another")
		s.submit(at, with(values, "text."+y, "edited", "all", "")).is(http.StatusUnprocessableEntity).clean().says("it was edited", "edited</textarea>")
		values.Set("text."+y, "y")
		s.submit(at, values).is(http.StatusConflict).clean().says("text."+x, "3</textarea>")
	})
}

func TestOnlyOperatorsOfThisSiteAct(t *testing.T) {
	t.Parallel()
	s := newScene(t, testdb.SQLite(t))
	failed := s.run("load", map[string]string{"input": "bad.csv"})
	at := "/executions/" + id(failed) + "/restart"
	values := s.get(at).fieldsOf()
	s.call(viewerToken, http.MethodGet, at).is(http.StatusForbidden)
	require.NotContains(t, s.call(viewerToken, http.MethodGet, "/executions/"+id(failed)).is(http.StatusOK).text, "/restart")
	s.submitAs(viewerToken, at, values).is(http.StatusForbidden)
	s.submitAs("", at, values).is(http.StatusUnauthorized)
	s.submitAs("another-token-0123456789", at, values).is(http.StatusUnauthorized)
	s.submit(at, values, "Sec-Fetch-Site", "cross-site").is(http.StatusForbidden)
	s.submit(at, values, "Origin", "http://elsewhere.example").is(http.StatusForbidden)
	s.get("/executions/" + id(failed)).says("attempt 1<")
}

func id(of core.JobExecutionID) string { return strconv.FormatInt(int64(of), 10) }

func TestAllExecutionsThatFiltersSelectAreRestartedTogether(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		var failed []string
		for _, day := range []string{"2026-11-01", "2026-11-02", "2026-11-03"} {
			failed = append(failed, id(s.run("load", map[string]string{"input": "bad.csv", "day": day})))
		}
		done := s.run("load", nil)
		at := "/bulk?job=load&statuses=FAILED"
		s.get("/executions?job=load&statuses=FAILED").is(http.StatusOK).says("Act on all of them")
		page := s.get(at).is(http.StatusOK).clean().says("Act on 3 executions", "Restart 3 executions", "resume load")
		wider := strings.Replace(at, "FAILED", "FAILD", 1)
		wrong := s.get(wider).is(http.StatusUnprocessableEntity).clean().says("no such status", "nothing is done while a filter is wrong")
		require.NotContains(t, wrong.text, `<button class="main">`)
		s.submit(wider, page.fieldsOf()).is(http.StatusUnprocessableEntity).clean().says("nothing is done")
		fewer := with(s.get(at).fieldsOf(), "expect", "2")
		s.submit(at, fewer).is(http.StatusConflict).clean().says("3")
		group := s.submit(at, page.fieldsOf()).is(http.StatusSeeOther).header.Get("Location")
		require.Equal(t, group, s.submit(at, page.fieldsOf()).is(http.StatusSeeOther).header.Get("Location"))
		s.get(group).is(http.StatusOK).clean().says("3", "restart of 3 executions")
		s.submit(group+"/cancel", s.get(group+"/cancel").is(http.StatusOK).clean().fieldsOf()).is(http.StatusSeeOther)
		s.get("/executions").is(http.StatusOK).says("Act on those that are chosen", `name="execution" value="`+failed[1]+`"`)
		s.get("/bulk?execution="+failed[0]+"&execution="+failed[2]).is(http.StatusOK).clean().says("Act on 2 executions", "Restart 2 executions")
		s.get("/bulk?execution=two").is(http.StatusUnprocessableEntity).clean()
		s.get("/bulk?job=load&statuses=COMPLETED").is(http.StatusOK).clean().says("refused", id(done))
	})
}

func TestMissingDaysAreBackFilledFromTheCalendar(t *testing.T) {
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url, func(c *console.Config) {
			c.Now = func() time.Time { return time.Date(2026, 11, 7, 12, 0, 0, 0, time.UTC) }
		})
		done := s.run("load", map[string]string{"day": "2026-11-03"})
		failed := s.run("load", map[string]string{"day": "2026-11-05", "input": "bad.csv"})
		month := s.get("/jobs/load?month=2026-11").is(http.StatusOK).clean().says("Run the missing days", `href="/jobs/load/run?params.day=2026-11-04"`)
		require.NotContains(t, month.text, "params.day=2026-11-08")
		at := html.UnescapeString(regexp.MustCompile(`href="(/jobs/load/backfill\?[^"]+)"`).FindStringSubmatch(month.text)[1])
		require.Equal(t, "/jobs/load/backfill?from=2026-11-01&param=day&to=2026-11-07", at)
		require.NotContains(t, s.call(viewerToken, http.MethodGet, "/jobs/load?month=2026-11").is(http.StatusOK).text, "backfill")
		require.NotContains(t, s.get("/jobs/load?month=2026-12").is(http.StatusOK).text, "backfill")

		page := s.get(at).is(http.StatusOK).clean().says("7 values: 5 new, 0 resumed, 2 left out, 0 refused", "Run 5 instances", "leave out: complete by execution "+id(done), `name="params.note"`)
		require.NotContains(t, page.text, `name="params.day"`)
		at = "/jobs/load/backfill"
		other := with(page.fieldsOf(), "only", "all")
		page = s.submit(at, other).is(http.StatusOK).clean().says("5 new, 1 resumed, 1 left out", "resume execution "+id(failed), "Run 6 instances")
		s.submit(at, with(page.fieldsOf(), "expect", "5")).is(http.StatusConflict).clean().says("6 instances would run now")
		s.submit(at, with(page.fieldsOf(), "from", "2026-11-31", "do", "check")).is(http.StatusOK).clean().says("2026-11-31", `value="2026-11-31"`)
		values := with(s.get(at+"?only=all&from=2026-11-01&to=2026-11-07").fieldsOf(), "parallel", "3", "do", "check")
		values = s.submit(at, values).is(http.StatusOK).clean().fieldsOf()
		group := s.submit(at, values).is(http.StatusSeeOther).header.Get("Location")
		require.Equal(t, group, s.submit(at, values).is(http.StatusSeeOther).header.Get("Location"))
		s.get(group).is(http.StatusOK).clean().says("back-fill of load by day from 2026-11-01 to 2026-11-07: 6 instances", "3 tasks at once")

		many := s.get(at+"?from=2026-01-01&to=2026-06-01").is(http.StatusOK).clean().says("Run 152 instances", "type 152")
		s.submit(at, with(many.fieldsOf(), "confirm", "12")).is(http.StatusUnprocessableEntity).clean().says("type the number of instances, 152")
		s.get(at).is(http.StatusOK).clean().says(`value="day" selected`)
		s.get("/jobs/parts/backfill?param=x&from=1&to=2").clean().says("the job has no such parameter")
		s.get("/jobs/none/backfill").is(http.StatusNotFound).clean()
	})
}

func TestSettingsAndTasksAreChangedByTheirForms(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		name := regexp.MustCompile(`href="(/settings/[^"]+)"`).FindStringSubmatch(s.get("/settings").is(http.StatusOK).clean().text)
		require.NotNil(t, name)
		form := s.get(name[1]).is(http.StatusOK).clean().fieldsOf()
		s.submit(name[1], with(form, "value", "no number at all")).is(http.StatusUnprocessableEntity).clean().says("no number at all")
		require.Equal(t, "/settings", s.submit(name[1], with(s.get(name[1]).fieldsOf(), "value", "7")).is(http.StatusSeeOther).header.Get("Location"))
		s.get("/settings").is(http.StatusOK).says(">7<")
		s.get("/settings/none").is(http.StatusNotFound).clean()
		s.get("/tasks/99/cancel").is(http.StatusNotFound).clean()
		s.get("/schedules/load/pause").is(http.StatusNotFound).clean()
		s.submit("/recover", s.get("/recover").is(http.StatusOK).clean().fieldsOf()).is(http.StatusSeeOther)
	})
}

const dailyJob = `job: daily
parameters: {day: {type: date}}
schedule: {cron: "30 2 * * *", timezone: Europe/Berlin, parameters: {day: "${schedule.previous_day}"}}
flow:
- {step: one, tasklet: {sql: select 1}}
`

func TestAScheduleIsRegisteredPausedRunAndResumedByItsForms(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		does := func(path string, pairs ...string) string {
			return s.submit(path, with(s.get(path).is(http.StatusOK).clean().fieldsOf(), pairs...)).is(http.StatusSeeOther).header.Get("Location")
		}
		s.get("/jobs/load/register").is(http.StatusOK).clean().says("It is not registered.", "has no schedule")
		s.get("/jobs/none/register").is(http.StatusNotFound).clean()
		s.get("/schedules/daily/run").is(http.StatusNotFound).clean()
		s.get("/jobs/daily").says(`href="/jobs/daily/register"`)
		require.Equal(t, "/schedules/daily", does("/jobs/daily/register"))
		s.get("/jobs/daily/register").is(http.StatusOK).clean().says("with this version already")
		s.get("/schedules/daily").is(http.StatusOK).clean().says(`href="/schedules/daily/run"`, `href="/schedules/daily/pause"`)
		require.Equal(t, "/schedules/daily", does("/schedules/daily/pause"))
		s.get("/schedules").is(http.StatusOK).clean().says("No schedule is active", `href="/schedules/daily"`, "<td>disabled</td>")

		at := "/schedules/daily/run"
		page := s.get(at).is(http.StatusOK).clean().says("is not due at this time")
		shown := s.submit(at, with(page.fieldsOf(), "time", "2026-11-27T02:30")).is(http.StatusOK).clean().says("day=2026-11-26", "Run it for 2026-11-27T02:30")
		wrong := s.submit(at, with(page.fieldsOf(), "time", "soon", "reason", "why", "do", "check")).is(http.StatusOK).clean().says("is not a time", `value="soon"`, `value="why"`)
		require.NotContains(t, wrong.text, `<button class="main">`)
		values := with(shown.fieldsOf(), "reason", "the file came late")
		task := s.submit(at, values).is(http.StatusSeeOther).header.Get("Location")
		require.Equal(t, "/tasks/1", task)
		require.Equal(t, task, s.submit(at, values).is(http.StatusSeeOther).header.Get("Location"), "a double click")
		require.Equal(t, task, s.submit(at, with(values, "key", "another")).is(http.StatusSeeOther).header.Get("Location"), "another operator")
		s.get(at+"?time=2026-11-27T02:30").is(http.StatusOK).clean().says("has task 1 already", `href="/tasks/1"`)
		require.Equal(t, "/schedules/daily", does("/schedules/daily/resume"))
		s.get("/audit").is(http.StatusOK).clean().says("for 2026-11-27T02:30, task 1: the file came late")
	})
}

func TestATaskIsSubmittedByItsFormAndItsOutputIsRead(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, url string) {
		s := newScene(t, url)
		form := s.get("/tasks/submit").is(http.StatusOK).clean().fieldsOf()
		wrong := with(form, "type", "shell", "title", "<b>", "payload", `{"script": `, "max_attempts", "2")
		s.submit("/tasks/submit", wrong).is(http.StatusUnprocessableEntity).clean().says("is not JSON", `href="#payload"`, `{&#34;script&#34;: </textarea>`, `value="&lt;b&gt;"`)
		s.submit("/tasks/submit", with(form, "payload", `{"a": 1, "a": 2}`)).is(http.StatusBadRequest).clean()
		s.submit("/tasks/submit", with(form, "payload", `{"script": "date"}`, "max_attempts", "many")).is(http.StatusUnprocessableEntity).clean().says("max_attempts")
		s.submit("/tasks/submit", with(form, "max_attempts", "2", "type", "")).is(http.StatusUnprocessableEntity).clean().says("type")
		values := with(s.get("/tasks/submit").fieldsOf(), "type", "shell", "payload", `{"script": "yes Grüße | head -9000"}`)
		at := s.submit("/tasks/submit", values).is(http.StatusSeeOther).header.Get("Location")
		require.Equal(t, at, s.submit("/tasks/submit", values).is(http.StatusSeeOther).header.Get("Location"))
		s.submit("/tasks/submit", with(s.get("/tasks/submit").fieldsOf(), "type", "shell", "title", "the other one", "payload", `{"script": "true"}`)).is(http.StatusSeeOther)
		s.get("/tasks?text=OTHER").is(http.StatusOK).clean().says("the other one", "text: OTHER")
		require.NotContains(t, s.get("/tasks?text=OTHER").text, `href="`+at+`"`)
		require.NotContains(t, s.get("/tasks?since=2200-01-01").is(http.StatusOK).text, "the other one")
		s.get("/tasks?since=2026-01-02&until=2026-01-01").is(http.StatusUnprocessableEntity).clean().says("is not after since", "the other one")
		s.get(at + "/log").is(http.StatusOK).clean().says("It left none.")

		stop, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- s.app.Work(context.WithoutCancel(t.Context()), stop, runtime.Options{Slots: 2, Poll: 20 * time.Millisecond, Types: []string{"shell"}})
		}()
		require.Eventually(t, func() bool { return strings.Contains(s.get(at).text, "succeeded") }, time.Minute, 20*time.Millisecond)
		s.get("/workers").is(http.StatusOK).clean().says("rest of its lease", "<b>leads</b>", `href="/tasks?type=shell"`)
		close(stop)
		require.NoError(t, <-ended)
		s.get(at).clean().says(`href="` + at + `/log?attempt=1"`)
		page := s.get(at+"/log").is(http.StatusOK).clean().says("attempt 1, Stdout (49,152 characters)", "Grüße", "further text")
		next := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(page.text)
		require.NotNil(t, next)
		s.get(html.UnescapeString(next[1])).is(http.StatusOK).clean().says("the beginning", "Grüße")
		s.get(at + "/log?attempt=7").is(http.StatusNotFound).clean()
		s.get("/tasks/99/log").is(http.StatusNotFound).clean()

		_, err := s.vault.Give("later", "Grüße\nGrüße") // known here only since the output was stored
		require.NoError(t, err)
		require.NotContains(t, s.get(at+"/log").is(http.StatusOK).text, "Grüße")
		read := ""
		for from := range 20 {
			var page struct{ Text string }
			require.NoError(t, json.Unmarshal([]byte(s.get(fmt.Sprintf("/v1%s/log?from=%d&limit=1", at, from)).is(http.StatusOK).text), &page))
			read += page.Text
		}
		require.NotContains(t, read, "Grüße", "read in pieces")
	})
}
