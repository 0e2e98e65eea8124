package console

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/access"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

// reportParts are the pages of an execution that a report has.
func reportParts() []struct {
	name, title string
	show        func(ofExecution) (*page, error)
} {
	return []struct {
		name, title string
		show        func(ofExecution) (*page, error)
	}{
		{"execution", "", ofExecution.execution},
		{"results", "Results", ofExecution.results},
		{"skips", "Skipped items", ofExecution.skips},
		{"throughput", "Throughput", ofExecution.throughput},
		{"log", "Log, its last lines", ofExecution.log},
		{"definition", "Job file", ofExecution.definition},
		{"changes", "Audit", ofExecution.changes},
	}
}

// Report returns an execution as one file of HTML without a script: the texts and pictures of its pages.
func Report(ctx context.Context, config Config, of core.JobExecutionID) ([]byte, error) {
	c, err := newConsole(nil, config)
	if err != nil {
		return nil, err
	}
	at := url.URL{Path: "/executions/" + id(of)}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("report execution %d: %w", of, err)
	}
	r.SetPathValue("execution", id(of))
	v := &visit{console: c, r: r, zone: time.UTC, theme: themes()[0], caller: access.Caller{Role: settings.Operator}}
	return reporting{v}.report()
}

// reporting is a visit of the pages of an execution.
type reporting struct{ *visit }

// report renders the pages, one below the other.
func (v reporting) report() ([]byte, error) {
	styles, err := v.assets.text("console.css")
	if err != nil {
		return nil, err
	}
	icons, err := v.assets.text("icons.svg")
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	title := ""
	for i, part := range reportParts() {
		p, err := part.show(ofExecution(v))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
		var out bytes.Buffer
		if err := v.pages[part.name].ExecuteTemplate(&out, "main", p.Body); err != nil {
			return nil, fmt.Errorf("render %s: %w", part.name, err)
		}
		text := detached(string(inert(out.Bytes(), v.Mask)))
		if i == 0 {
			title = p.Title
			body.WriteString("<h1>" + html.EscapeString(p.Heading) + "</h1>\n<p class=\"quiet\">As of " + html.EscapeString(v.moment(v.Now()).Text) + ", times in " + html.EscapeString(v.zone.String()) + "</p>\n" + text)
			continue
		}
		body.WriteString("\n<section class=\"part\"><h2>" + part.title + "</h2>\n" + withoutHead(text) + "</section>")
	}
	var file bytes.Buffer
	err = v.pages["report"].ExecuteTemplate(&file, "report", struct {
		Title string
		Style template.CSS
		Icons template.HTML
		Body  template.HTML
	}{title, template.CSS(styles), template.HTML(icons), template.HTML(body.String())}) //nolint:gosec // ours, and rendered by templates
	if err != nil {
		return nil, fmt.Errorf("render the report: %w", err)
	}
	return file.Bytes(), nil
}

// detached removes forms, navigation and links. Icons are in the file.
func detached(text string) string {
	for _, of := range []*regexp.Regexp{formTag(), navTag()} {
		text = of.ReplaceAllString(text, "")
	}
	text = regexp.MustCompile(`<a [^>]*?href="(?:[^#"][^"]*)?"([^>]*)>`).ReplaceAllString(text, "<a>")
	return regexp.MustCompile(`href="[^"#]*/static/icons\.[0-9a-f]+\.svg#`).ReplaceAllString(text, `href="#`)
}

func formTag() *regexp.Regexp { return regexp.MustCompile(`(?s)<form[ >].*?</form>`) }

func navTag() *regexp.Regexp { return regexp.MustCompile(`(?s)<nav[ >].*?</nav>`) }

// withoutHead removes the strip that all pages of an execution begin with.
func withoutHead(text string) string {
	if before, after, found := strings.Cut(text, `<dl class="strip">`); found && strings.TrimSpace(before) == "" {
		if _, rest, found := strings.Cut(after, "</dl>"); found {
			return rest
		}
	}
	return text
}

// reportFile is the report as a download.
func (v download) reportFile() (*page, error) {
	text, err := reporting{v.visit}.report()
	if err != nil {
		return nil, err
	}
	file := attach(v.visit, "execution-"+id(v.executionID())+".html", "text/html; charset=utf-8")
	file.text(string(text))
	return file.end(nil)
}
