package jobfile

import (
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/calendar"

	"github.com/surfin-batch/surfin/internal/expression"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func (l *checker) checkTimezone() {
	root := l.file.doc.Root
	if err := l.readTimezone(); err != nil {
		l.problems.Add(root.Get("timezone"), "timezone: "+err.Error(), "such as Europe/Berlin")
	}
	l.checkPositive(root, "timeout", l.file.model.Timeout)
}

// readTimezone reads the job's time zone, which templates need before the rest of the file: UTC by default.
func (l *checker) readTimezone() error {
	l.file.clock.zone = time.UTC
	at := l.file.doc.Root.Get("timezone")
	if at == nil || at.Bad || at.Kind != yamlfile.Scalar || at.Empty || at.Text == "" {
		return nil
	}
	zone, err := schedule.LoadZone(at.Text)
	if err != nil {
		return err
	}
	l.file.clock.zone = zone
	return nil
}

// clock is the time zone of a job, with its calendars of business days.
type clock struct {
	zone      *time.Location
	calendars map[string]*calendar.Calendar
}

// addTo adds the zone and the calendars to the names of an expression.
func (c clock) addTo(scope expression.Scope) {
	scope[expression.Calendars] = expression.Var{Calendars: c.calendars}
	scope[expression.Zone] = expression.Var{Zone: c.zone}
}

// values returns today() and now() at a time: the day is a day in the job's time zone.
func (c clock) values(now time.Time) map[string]any {
	_, offset := now.In(c.zone).Zone()
	local := now.Add(time.Duration(offset) * time.Second).UTC()
	days := local.Truncate(24*time.Hour).Unix() / int64(24*time.Hour/time.Second)
	return map[string]any{expression.Today: core.Date(0).AddDays(int(days)), expression.Now: now.UTC().Truncate(time.Microsecond)}
}

// clockDefault is the default of a parameter that depends on the time.
type clockDefault struct {
	parameter string
	template  *template
}

func (f *fileDef) keepComputed(spec core.ParameterSpec, t *template) {
	for _, h := range t.holes {
		if h.prog.UsesClock() {
			f.clockDefaults = append(f.clockDefaults, clockDefault{spec.Name, t})
			return
		}
	}
}

// parameters are the specs with the defaults of now.
func (f *fileDef) parameters() []core.ParameterSpec { return f.parametersAt(f.now()) }

// parametersAt are the specs with the defaults at a time. A default that does not fit its type at that time
// keeps its value from the load.
func (f *fileDef) parametersAt(now time.Time) []core.ParameterSpec {
	specs := slices.Clone(f.specs)
	for _, d := range f.clockDefaults {
		text, _, err := d.template.evaluate(f.clock.values(now))
		if err != nil {
			continue
		}
		i := slices.IndexFunc(specs, func(s core.ParameterSpec) bool { return s.Name == d.parameter })
		if x, err := specs[i].Parse(text); err == nil {
			specs[i].Default, specs[i].FormerDefault = x, specs[i].Former(text, x)
		}
	}
	return specs
}
