package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/humanize"
)

// moment is a time as a page shows it: in the page's zone, with UTC next to it.
type moment struct {
	// ISO is for programs, Text in the zone, UTC for the hover. They are empty for no time.
	ISO, Text, UTC string
}

type zoneView struct {
	Name    string
	Choices []choice
}

type choice struct {
	Name, Link string
	Chosen     bool
}

const (
	zoneKey  = "tz"
	themeKey = "theme"
	keepFor  = 365 * 24 * 60 * 60 // seconds
)

// choose reads the zone and the look: from the address, which is remembered, else from the cookies.
func (v *visit) choose() {
	v.zone = time.UTC
	if zone, ok := zoneOf(v.setting(zoneKey)); ok {
		v.zone = zone
	} else {
		v.mistake(zoneKey, v.text(zoneKey), "no such time zone", "UTC", "Europe/Berlin", "America/New_York", "...")
	}
	v.theme = v.setting(themeKey)
	if !slices.Contains(themes(), v.theme) {
		if v.theme != "" {
			v.mistake(themeKey, v.theme, "no such look", themes()...)
		}
		v.theme = themes()[0]
	}
	v.keep(zoneKey, v.zone.String())
	v.keep(themeKey, v.theme)
}

func themes() []string { return []string{"system", "light", "dark"} }

// setting is a value in the address, else in a cookie; a wrong one in a cookie counts as none.
func (v *visit) setting(name string) string {
	if text := v.text(name); text != "" {
		return text
	}
	cookie, err := v.r.Cookie("surfin_" + name)
	if err != nil {
		return ""
	}
	text := strings.ReplaceAll(cookie.Value, "~", "/")
	if _, ok := zoneOf(text); name == zoneKey && !ok || name == themeKey && !slices.Contains(themes(), text) {
		return ""
	}
	return text
}

// keep remembers a value that the address names.
func (v *visit) keep(name, value string) {
	if v.text(name) == "" || len(v.wrong) > 0 {
		return
	}
	http.SetCookie(v.w, &http.Cookie{
		Name: "surfin_" + name, Value: strings.ReplaceAll(value, "/", "~"), Path: v.Base + "/", MaxAge: keepFor, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

func zoneOf(name string) (*time.Location, bool) {
	if name == "" || strings.EqualFold(name, "UTC") {
		return time.UTC, true
	}
	if strings.EqualFold(name, "server") {
		return time.Local, true
	}
	const longest = 60
	if len(name) > longest {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

func (v *visit) zoneView() zoneView {
	z := zoneView{Name: v.zoneName()}
	for _, name := range []string{"UTC", "server"} {
		z.Choices = append(z.Choices, choice{Name: name, Link: v.with(zoneKey, name)})
	}
	return z
}

func (v *visit) zoneName() string {
	if v.zone == time.Local { //nolint:gosmopolitan // the server's own zone, by name
		name, _ := v.Now().In(v.zone).Zone()
		return name + ", the server's zone"
	}
	return v.zone.String()
}

func (v *visit) moment(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{
		ISO: t.UTC().Format(time.RFC3339Nano), Text: t.In(v.zone).Format("2006-01-02 15:04:05"), UTC: humanize.Time(t),
	}
}

// instant is a moment with milliseconds.
func (v *visit) instant(t time.Time) moment {
	m := v.moment(t)
	if m.Text != "" {
		m.Text = t.In(v.zone).Format("2006-01-02 15:04:05.000")
	}
	return m
}
