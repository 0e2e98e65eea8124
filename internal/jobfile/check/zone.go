package check

import (
	"time"

	"github.com/surfin-batch/surfin/internal/schedule"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

func (l *checker) checkTimezone() {
	root := l.file.Doc.Root
	if err := l.readTimezone(); err != nil {
		l.problems.Add(root.Get("timezone"), "timezone: "+err.Error(), "such as Europe/Berlin")
	}
	l.checkPositive(root, "timeout", l.file.Model.Timeout)
}

// readTimezone reads the job's time zone, which templates need before the rest of the file: UTC by default.
func (l *checker) readTimezone() error {
	l.file.Clock.Zone = time.UTC
	at := l.file.Doc.Root.Get("timezone")
	if at == nil || at.Bad || at.Kind != yamlfile.Scalar || at.Empty || at.Text == "" {
		return nil
	}
	zone, err := schedule.LoadZone(at.Text)
	if err != nil {
		return err
	}
	l.file.Clock.Zone = zone
	return nil
}
