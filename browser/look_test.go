package browser

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

//go:embed axe/axe.min.js
var axe string

// finding is a rule of axe that a page does not keep.
type finding struct{ Rule, Says, Where string }

// findings runs axe on the page in its current state. It loads nothing. Rows of a long table are alike.
// %s are further options.
const findings = `axe.run({include: [document], exclude: [["tbody tr:nth-child(n+40)"]]}, {%s resultTypes: ["violations"], preload: false, elementRef: false}).then(r => r.violations.flatMap(v =>
	v.nodes.slice(0, 3).map(n => ({Rule: v.id, Says: n.failureSummary.replace(/\s+/g, " "), Where: n.html.slice(0, 200)}))))`

// view is how a page is shown.
type view struct {
	theme string
	width int64
}

func everyView() []view {
	return []view{{"light", 360}, {"light", 1440}, {"dark", 360}, {"dark", 1440}}
}

// twoViews are for a page of a kind that was seen in all.
func twoViews() []view { return []view{{"light", 360}, {"dark", 1440}} }

// look checks the page as it is, and keeps pictures of it: on one database, since the pages are the same on both.
func (b *tab) look(name string) { b.lookAt(name, everyView()) }

func (b *tab) lookAt(name string, views []view) {
	b.t.Helper()
	if b.seen++; strings.HasSuffix(b.t.Name(), "/sqlite") {
		return
	}
	if !evaluate[bool](b, `typeof axe === "object"`) {
		b.do(chromedp.Evaluate[chromedp.Void](axe))
	}
	for _, v := range views {
		b.shape(v.theme, v.width)
		at := fmt.Sprintf("%s, %s at %d pixels", b.path(), v.theme, v.width)
		rules := ""
		if v.theme == "dark" {
			rules = `runOnly: {type: "rule", values: ["color-contrast"]},` // the others do not depend on colours
		}
		for _, f := range evaluate[[]finding](b, fmt.Sprintf(findings, rules)) {
			b.t.Errorf("%s: axe: %s: %s\n\t%s", at, f.Rule, f.Says, f.Where)
		}
		if wide := evaluate[int64](b, `document.documentElement.scrollWidth`); wide > v.width {
			b.t.Errorf("%s: the page is %d pixels wide: %s", at, wide, evaluate[string](b, widest))
		}
		b.keep(fmt.Sprintf("%s-%02d-%s-%s-%d.png", b.name, b.seen, name, v.theme, v.width))
	}
	b.shape("light", 1440)
}

// widest names an element that is wider than the page, and is not scrolled.
const widest = `(() => {
	const scrolled = e => e && e !== document.body && (getComputedStyle(e).overflowX !== "visible" || scrolled(e.parentElement));
	const e = [...document.body.querySelectorAll("*")].find(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolled(e));
	return e ? e.outerHTML.slice(0, 200) : "";
})()`

func (b *tab) shape(theme string, width int64) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}), chromedp.EmulateViewport(width, 900))
}

// keep writes a picture of the whole page.
func (b *tab) keep(file string) {
	b.t.Helper()
	b.write(filepath.Join(pictures, strings.ReplaceAll(b.t.Name(), "/", "-"), file), chromedp.FullScreenshot(100))
}

func (b *tab) write(path string, picture chromedp.Action[[]byte]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, picture)
	require.NoError(b.t, err)
	require.NoError(b.t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // pictures are for everybody
	require.NoError(b.t, os.WriteFile(path, png, 0o644))         //nolint:gosec // pictures are for everybody
}
