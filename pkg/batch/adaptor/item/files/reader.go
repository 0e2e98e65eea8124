package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/itemextra"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

type reader struct {
	config  config
	context func() *core.ExecutionContext // nil means that the list is only in memory
	open    func(ctx context.Context, path string) (item.Reader, error)
	none    item.Reader

	files  []filestream.Listed
	list   string
	at     int
	inner  item.Reader
	accept bool
	// the file of texts for OpenRaw, or empty
	text string
}

type position struct {
	List   string          `json:"list"`
	At     int             `json:"at"`
	Path   string          `json:"path,omitempty"`
	Reader json.RawMessage `json:"reader,omitempty"`
}

func (r *reader) NewItems(capacity int) item.Items { return r.none.NewItems(capacity) }

func (r *reader) Component() any { return r }

func (r *reader) AcceptChanges() { r.accept = true }

// Open finds the files, or continues with the previous attempt's.
func (r *reader) Open(ctx context.Context, at item.Position) error {
	err := r.start(ctx, at)
	if err != nil {
		return fmt.Errorf("files: %w", err)
	}
	return nil
}

func (r *reader) start(ctx context.Context, at item.Position) error {
	if at == nil {
		return r.fix(ctx)
	}
	var pos position
	if err := json.Unmarshal(at, &pos); err != nil {
		return fmt.Errorf("cannot restart: the stored position is unreadable: %w", err)
	}
	if err := r.recall(pos); err != nil {
		return err
	}
	if err := r.check(ctx, pos.At); err != nil {
		return err
	}
	if r.at = pos.At; len(pos.Reader) == 0 || r.at == len(r.files) {
		return nil
	}
	return r.next(ctx, item.Position(pos.Reader))
}

func (r *reader) fix(ctx context.Context) (err error) {
	if r.files, err = find(ctx, r.config.Glob, r.config.Order); err != nil {
		return err
	}
	if len(r.files) == 0 && r.config.Required {
		return fmt.Errorf("no file matches %s", r.config.Glob)
	}
	r.at = 0
	return r.keep()
}

func (r *reader) keep() error {
	list, err := filestream.EncodeList(r.files)
	if err != nil {
		return err
	}
	r.list = sum(r.files)
	if r.context == nil {
		return nil
	}
	return r.context().Put(filestream.ListKey, list)
}

func (r *reader) recall(pos position) error {
	if r.context == nil {
		return errNoContext
	}
	kept, _ := r.context().Get(filestream.ListKey)
	list, _ := kept.(string)
	if list == "" {
		return errNoContext
	}
	var err error
	if r.files, err = filestream.DecodeList(list); err != nil {
		return fmt.Errorf("cannot restart: the stored list of files is unreadable: %w", err)
	}
	if r.list = sum(r.files); r.list != pos.List && sumOfText(list) != pos.List {
		return errNoContext
	}
	if pos.At < 0 || pos.At > len(r.files) {
		return fmt.Errorf("cannot restart: the position is in file %d of %d", pos.At+1, len(r.files))
	}
	return nil
}

// at is the current file
func (r *reader) check(ctx context.Context, at int) error {
	var errs []error
	accepted := false
	for i, f := range r.files {
		what, gone, err := f.Changed(ctx)
		switch {
		case err != nil:
			errs = append(errs, err)
		case what == "", r.accept && gone && i < at:
		case r.accept && !gone:
			accepted = true
		case gone && i >= at:
			errs = append(errs, fmt.Errorf("%s has not been read yet, and %s: restore it, or start again with --from-start", f.Path, what))
		default:
			errs = append(errs, fmt.Errorf("%s changed since the step began: %s; --accept-changes continues all the same", f.Path, what))
		}
		if len(errs) == maxNamed {
			errs = append(errs, errors.New("there may be more"))
			break
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("cannot restart: %w", errors.Join(errs...))
	}
	if accepted {
		return r.markAgain(ctx, at)
	}
	return nil
}

// This is the state that the step will have read (rule TL3a). Files that were read before keep their marks.
func (r *reader) markAgain(ctx context.Context, at int) error {
	for i := at; i < len(r.files); i++ {
		info, err := place.Stat(ctx, r.files[i].Path)
		if err != nil {
			return err
		}
		r.files[i].Mark = info.Mark()
	}
	return r.keep()
}

const maxNamed = 5

func (r *reader) next(ctx context.Context, at item.Position) error {
	inner, err := r.open(ctx, r.files[r.at].Path)
	if err != nil {
		return err
	}
	component := inner.Component()
	if accepter, ok := component.(itemextra.ChangesAccepter); ok && r.accept && at != nil {
		accepter.AcceptChanges()
	}
	if opener, ok := component.(item.Opener); ok {
		if err := opener.Open(ctx, at); err != nil {
			return errors.Join(unopened(err), shut(ctx, inner))
		}
	}
	r.inner = inner
	return nil
}

// An error of the header has consumed nothing: the next read would find it again.
func unopened(err error) error {
	if item.IsConsumed(err) {
		return exception.Fatal("", errors.New(err.Error()))
	}
	return err
}

func shut(ctx context.Context, r item.Reader) error {
	if closer, ok := r.Component().(item.Closer); ok {
		return closer.Close(context.WithoutCancel(ctx))
	}
	return nil
}

func (r *reader) Fill(ctx context.Context, items item.Items, n int) error {
	for items.Len() < n {
		if r.inner == nil {
			if r.at >= len(r.files) {
				return io.EOF
			}
			if err := r.next(ctx, nil); err != nil {
				return fmt.Errorf("files: %w", err)
			}
		}
		err := r.inner.Fill(ctx, items, n)
		if err != io.EOF || r.text != "" { //nolint:errorlint // the end is io.EOF itself
			return err
		}
		ended := r.inner
		r.inner, r.at = nil, r.at+1
		if err := shut(ctx, ended); err != nil {
			return fmt.Errorf("files: close %s: %w", r.files[r.at-1].Path, err)
		}
	}
	return nil
}

func (r *reader) IndependentOf(database string) bool {
	return itemextra.IsIndependent(r.none.Component(), database)
}

// Position implements item.Positioner.
func (r *reader) Position() (item.Position, error) {
	pos := position{List: r.list, At: r.at}
	if r.inner != nil {
		at, err := r.inner.Component().(item.Positioner).Position()
		if err != nil {
			return nil, err
		}
		pos.Path, pos.Reader = r.files[r.at].Path, at.JSON()
	}
	return json.Marshal(pos)
}

func (r *reader) Close(ctx context.Context) error {
	if r.inner == nil {
		return nil
	}
	inner := r.inner
	r.inner, r.files, r.at = nil, nil, 0
	return shut(ctx, inner)
}

func (r *reader) RawText() item.RawText {
	if r.inner == nil {
		return item.RawText{}
	}
	raw, ok := r.inner.Component().(item.RawReader)
	if !ok {
		return item.RawText{}
	}
	return raw.RawText()
}

// The text is read by the reader of its file.
func (r *reader) OpenRaw(ctx context.Context, meta item.Meta, raw item.RawText) error {
	if r.inner == nil || r.text != meta.Path {
		if err := r.Close(ctx); err != nil {
			return err
		}
		var err error
		if r.inner, err = r.open(ctx, meta.Path); err != nil {
			return err
		}
		r.text = meta.Path
	}
	opener, ok := r.inner.Component().(item.RawOpener)
	if !ok {
		return fmt.Errorf("files: %s cannot read an item from its text", r.config.Reader.Component.Name)
	}
	return opener.OpenRaw(ctx, meta, raw)
}
