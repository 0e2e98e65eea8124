package itemtype

import (
	"fmt"
	"time"

	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// setMisfits gives a field its handling of missing and unfit values, and its zone. It returns false after it
// reported a mistake.
func setMisfits(c *yamlfile.Collector, f *row.Field, m language.Field, jobZone *time.Location) bool {
	before := c.Reports()
	f.Coerce, _ = row.CoerceByName(m.Coerce)
	setDefault(c, f, m)
	setZone(c, f, m, jobZone)
	switch {
	case c.Reports() > before:
	case f.Coerce == row.CoerceNull && !f.Nullable:
		c.Add(m.Node.Find("coerce"), fmt.Sprintf("field %s: with coerce: null its type must allow null", f.Name), "type: "+f.Kind.String()+" null")
	case f.Coerce == row.CoerceDefault && m.Default == nil:
		c.Add(m.Node.Find("coerce"), fmt.Sprintf("field %s: with coerce: default it needs a default", f.Name), "such as default: "+defaultSample(f.Kind))
	}
	return c.Reports() == before
}

func setDefault(c *yamlfile.Collector, f *row.Field, m language.Field) {
	if m.Default == nil || m.Default.Node == nil {
		return
	}
	if f.Nullable {
		c.Add(m.Node.Find("default"), fmt.Sprintf("field %s has a default, so it is never null", f.Name), "type: "+f.Kind.String())
		return
	}
	plain := row.Field{Name: f.Name, Kind: f.Kind, Nulls: []string{}}
	v, err := plain.Parse(m.Default.Node.Text)
	if err != nil {
		c.Add(m.Default.Node, "default: "+err.Error(), "such as "+defaultSample(f.Kind))
		return
	}
	f.Default = v
}

func defaultSample(k row.Kind) string {
	switch k {
	case row.Bool:
		return "false"
	case row.DateKind:
		return "2026-01-31"
	case row.Timestamp:
		return "2026-01-31T08:30:00Z"
	case row.String:
		return "unknown"
	case row.JSONKind:
		return `"{}"`
	case row.UUIDKind:
		return "00000000-0000-0000-0000-000000000000"
	case row.BytesKind:
		return `""`
	default:
		if k.IsList() {
			return `"[]"`
		}
		return "0"
	}
}

func setZone(c *yamlfile.Collector, f *row.Field, m language.Field, jobZone *time.Location) {
	kind := f.Kind
	if elem, ok := kind.Elem(); ok {
		kind = elem
	}
	zoned := kind == row.Timestamp || kind == row.DateKind && isEpoch(m.Format)
	switch {
	case m.Zone != "" && !zoned:
		c.Add(m.Node.Find("zone"), fmt.Sprintf("field %s: a zone is for timestamp, not for %s", f.Name, f.Kind), "a date has none; leave it out")
	case m.Zone != "":
		zone, err := schedule.LoadZone(m.Zone)
		if err != nil {
			c.Add(m.Node.Find("zone"), fmt.Sprintf("field %s: zone: %v", f.Name, err), "such as Europe/Berlin")
			return
		}
		f.Zone = zone
	case zoned && jobZone != nil && jobZone != time.UTC:
		f.Zone = jobZone
	}
}

func isEpoch(format string) bool {
	probe, err := row.NewSchema(row.Field{Name: "x", Kind: row.DateKind, Format: format})
	return err == nil && probe.Field(0).Counts()
}
