package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/surfin-batch/surfin/internal/place"
)

// A part is the folder KEY.part.SUFFIX/ with an object `begin`, pieces, and a note of each publication that was begun.
const (
	partPrefix = ".part."
	beginName  = "begin"
	notePrefix = "upload."
)

func (o *objects) Parts(ctx context.Context, url string) ([]string, error) {
	store, key, err := o.at(url)
	if err != nil {
		return nil, err
	}
	folders, err := store.Folders(ctx, key+partPrefix)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(folders))
	for i, folder := range folders {
		list[i] = strings.TrimSuffix(strings.TrimPrefix(folder, key), "/")
	}
	slices.Sort(list)
	return list, nil
}

func (o *objects) Create(ctx context.Context, url, suffix string) (place.Part, error) {
	p, err := o.part(ctx, url, suffix)
	if err != nil {
		return nil, err
	}
	return p, p.begin()
}

func (o *objects) Resume(ctx context.Context, from place.Marked, url, into string) (place.Part, error) {
	old, err := o.part(ctx, from.Path, from.Part)
	if err != nil {
		return nil, err
	}
	if err := old.load(from.Size, from.Sum); err != nil {
		return nil, err
	}
	if into == "" {
		return old, old.tidy()
	}
	p, err := o.part(ctx, url, into)
	if err == nil {
		err = p.begin()
	}
	if err != nil {
		return nil, err
	}
	if old.begun.Before(p.begun) { // an upload without a note may be of that attempt
		p.begun = old.begun
	}
	return p, p.take(old)
}

func (o *objects) Withdraw(ctx context.Context, url, suffix string) error {
	p, err := o.part(ctx, url, suffix)
	if err != nil {
		return err
	}
	return p.remove()
}

func (o *objects) Published(ctx context.Context, url string) (string, error) {
	store, key, err := o.at(url)
	if err != nil {
		return "", err
	}
	found, err := store.Head(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return found.Part, err
}

// Cancel distinguishes an upload that was completed from one that another execution has aborted by its note: who aborts an
// upload that was there removes its note.
func (o *objects) Cancel(ctx context.Context, url, suffix, token string) (bool, error) {
	p, err := o.part(ctx, url, suffix)
	if err != nil {
		return false, err
	}
	err = p.store.Abort(ctx, p.key, token)
	switch {
	case err == nil:
		return true, p.store.Remove(ctx, p.note(token))
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	begun, err := p.has(beginName)
	if err != nil || !begun {
		return false, err
	}
	noted, err := p.has(notePrefix + token)
	return !noted, err
}

// endOthers aborts the publications of other parts of the same file, and uploads of attempts that died before they had
// sent a piece: the newest publication counts.
func (p *part) endOthers() error {
	notes := map[string]string{} // upload: key of its note
	err := p.store.List(p.ctx, p.key+partPrefix, func(found Object) error {
		folder, name, _ := strings.Cut(strings.TrimPrefix(found.Key, p.key), "/")
		if id, is := strings.CutPrefix(name, notePrefix); is {
			notes[id] = p.key + folder + "/" + name
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, note := range notes {
		switch err := p.store.Abort(p.ctx, p.key, id); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			if err := p.store.Remove(p.ctx, note); err != nil {
				return err
			}
		}
	}
	return p.endEmpty(notes)
}

func (p *part) endEmpty(notes map[string]string) error {
	uploads, err := p.store.Uploads(p.ctx, p.key)
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if _, noted := notes[u.ID]; noted || u.Key != p.key || u.Pieces != 0 || u.Begun.Before(p.begun) {
			continue
		}
		if err := p.store.Abort(p.ctx, p.key, u.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (p *part) remove() error {
	var keys []string
	err := p.store.List(p.ctx, p.folder(), func(found Object) error {
		keys = append(keys, found.Key)
		return nil
	})
	if err != nil {
		return err
	}
	// `begin` goes first: an attempt that wakes finds it gone.
	slices.SortStableFunc(keys, func(a, b string) int {
		return rank(p, a) - rank(p, b)
	})
	for _, key := range keys {
		if id, is := strings.CutPrefix(key, p.folder()+notePrefix); is {
			if err := p.store.Abort(p.ctx, p.key, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := p.store.Remove(p.ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return p.endMerging()
}

// endMerging ends the uploads of pieces that were being put together when an attempt died.
func (p *part) endMerging() error {
	uploads, err := p.store.Uploads(p.ctx, p.folder())
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if err := p.store.Abort(p.ctx, u.Key, u.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func rank(p *part, key string) int {
	switch name := strings.TrimPrefix(key, p.folder()); {
	case name == beginName:
		return 0
	case strings.HasPrefix(name, notePrefix):
		return 1
	}
	return 2
}

func (p *part) has(name string) (bool, error) {
	_, err := p.store.Head(p.ctx, p.folder()+name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// superseded explains that an upload is gone.
func superseded(err error) error { return fmt.Errorf("%w (%w)", place.ErrSuperseded, err) }
