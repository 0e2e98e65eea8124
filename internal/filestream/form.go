package filestream

import (
	"fmt"
	"maps"
	"slices"
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

func settings(form Form) []string {
	names := slices.Sorted(maps.Keys(form))
	if i := slices.Index(names, FormWriter); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, FormWriter)
	}
	return names
}
