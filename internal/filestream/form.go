package filestream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// Form holds the settings that show in the bytes of a file, by name, with values as messages print
// them.
type Form map[string]string

// FormWriter is the setting that names the writer.
const FormWriter = "writer"

const formCompression = "compression"

// FormError refuses to continue a file in another form than the one that it was begun in.
type FormError struct {
	Path, Part string
	Committed  int64
	Has, Now   string
}

// Error describes the difference and the remedy.
func (e *FormError) Error() string {
	return fmt.Sprintf("cannot restart: the file was started with %s, but now it is %s: a file has one format. Undo the change, or restart with --from-start, which writes %s from the beginning. Nothing is lost until then: the %d committed bytes are in %s",
		e.Has, e.Now, e.Path, e.Committed, e.Part)
}

func (o *Output) form() Form {
	form := Form{formCompression: cmp.Or(o.compression().name, CompressionNone)}
	maps.Copy(form, o.cfg.Form)
	return form
}

func (o *Output) checkForm(at OutputPosition) error {
	switch {
	case at.Form[formCompression] == "":
		return exception.Fatal("", fmt.Errorf("cannot restart: the step committed work with another writer in this position, so %s would have only the rest; undo the change, or restart with --from-start", o.cfg.Path))
	case at.Offset == 0:
		return nil
	}
	return o.compareForm(at, o.form())
}

func (o *Output) compareForm(at OutputPosition, now Form) error {
	var was, is []string
	for _, name := range settings(at.Form) {
		value, known := now[name]
		if !known || value == at.Form[name] || name != FormWriter && name != formCompression && at.Form[FormWriter] != now[FormWriter] {
			continue
		}
		was, is = append(was, name+" "+at.Form[name]), append(is, name+" "+value)
	}
	if len(was) == 0 {
		return nil
	}
	return exception.Fatal("", &FormError{
		Path: o.cfg.Path, Part: at.Path + at.Part, Committed: at.Offset, Has: strings.Join(was, "; "), Now: strings.Join(is, "; "),
	})
}

func settings(form Form) []string {
	names := slices.Sorted(maps.Keys(form))
	if i := slices.Index(names, FormWriter); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, FormWriter)
	}
	return names
}

// Declare adds a setting that is known only with the first item; it refuses a value that differs
// from the file's.
func (o *Output) Declare(setting, value string) error {
	if err := o.compareForm(o.taken, Form{FormWriter: o.cfg.Form[FormWriter], setting: value}); o.taken.Offset > 0 && err != nil {
		return err
	}
	o.at.Form = maps.Clone(o.at.Form)
	o.at.Form[setting] = value
	return nil
}
