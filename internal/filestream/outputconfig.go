package filestream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"

	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// OutputConfig configures an Output.
type OutputConfig struct {
	Path        string
	Compression WriteCompression // empty means auto; a gzip member or zstd frame per commit
	Form        Form
	// Append keeps the content of the file; nil means that it is replaced.
	Append  *Append
	Trailer []byte
	// Maker makes the published file of the written bytes, which are a journal then (rule C15v); nil publishes them
	// as they are.
	Maker Maker
	// Together keeps the part of a partition for Join, which publishes one file of all of them (rule C15w).
	Together bool
	// Mode is the permissions of the file; 0 means 0600.
	Mode fs.FileMode
	// Stdout is written if Path is core.StdPath; nil means os.Stdout.
	Stdout io.Writer
	// Attempt returns the attempt that writes the file; nil means a single writer after all its predecessors.
	Attempt func(ctx context.Context) (core.Attempt, error)
}

// Append describes the text of a file to append to: the part begins as a copy of it. Such a file
// has no trailer.
type Append struct {
	Encoding EncodingName
	LineEnd  []byte // in the encoding; a last line without an end gets it
	Ends     *Ends
	// Record is the length of the records in bytes if there are no lines.
	Record int
}

// Base is the beginning of a file: the copy in an appended one, where the zero Base means missing or empty, or the header of
// a part.
type Base struct {
	Size int64  `json:"size"` // in bytes of the file
	Sum  uint32 `json:"sum"`  // CRC-32C of them
	Open bool   `json:"open,omitempty"`
}

// OutputPosition is the committed part of a file, part of a writer's item.Position.
type OutputPosition struct {
	Path   string `json:"path"`
	Part   string `json:"part"`
	Offset int64  `json:"offset"`
	// Sum is the CRC-32C of these bytes.
	Sum  uint32 `json:"sum"`
	Form Form   `json:"form"`
	// Base is the copy that the file begins with; nil means that it does not append.
	Base *Base `json:"base,omitempty"`
	// Head is the beginning that only the first of several joined parts keeps; nil means that there is none.
	Head *Base `json:"head,omitempty"`
	// Staged is the publication that was begun, in a place without locks.
	Staged string `json:"staged,omitempty"`
	// Made is the file that was made of these bytes.
	Made *Made `json:"made,omitempty"`
}

func (c *OutputConfig) compression() compression {
	return compressionOf(c.Path, string(c.Compression))
}

func (c *OutputConfig) compressed() bool { return c.compression().name != "" }

func (c *OutputConfig) form() Form {
	form := Form{formCompression: cmp.Or(c.compression().name, CompressionNone)}
	maps.Copy(form, c.Form)
	return form
}

func (a *Append) ends() *Ends {
	if a.Record > 0 {
		return nil
	}
	return a.Ends
}

func (c *OutputConfig) checkAppend(at OutputPosition) error {
	if at.Offset == 0 || (at.Base != nil) == (c.Append != nil) {
		return nil
	}
	return exception.Fatal("", &FormError{
		Path: c.Path, Part: at.Path + at.Part, Committed: at.Offset,
		Has: fmt.Sprintf("append %t", at.Base != nil), Now: fmt.Sprintf("append %t", c.Append != nil),
	})
}

func (c *OutputConfig) checkForm(at OutputPosition) error {
	switch {
	case at.Form[formCompression] == "":
		return exception.Fatal("", fmt.Errorf("cannot restart: the step committed work with another writer in this position, so %s would have only the rest; undo the change, or restart with --from-start", c.Path))
	case at.Offset == 0:
		return nil
	}
	return c.compareForm(at, c.form())
}

func (c *OutputConfig) compareForm(at OutputPosition, now Form) error {
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
		Path: c.Path, Part: at.Path + at.Part, Committed: at.Offset, Has: strings.Join(was, "; "), Now: strings.Join(is, "; "),
	})
}
