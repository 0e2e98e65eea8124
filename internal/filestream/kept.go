package filestream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
)

// kept is the part of an Output in a place without locks (rule OB2).
type kept struct {
	o       *Output
	in      place.Keeper
	part    place.Part
	attempt core.Attempt
	suffix  string
	earlier []place.Marked // parts of earlier attempts
}

func keeper(ctx context.Context, path string) (place.Keeper, error) {
	in, err := place.KeeperOf(ctx, path)
	if err != nil {
		return nil, pathError(path, err)
	}
	return in, nil
}

func openKept(ctx context.Context, o *Output, in place.Keeper, at *OutputPosition) error {
	if o.cfg.Append != nil {
		return fmt.Errorf("%s: append is for files of a disk: here a file is published whole", o.cfg.Path)
	}
	if err := o.takes(at); err != nil {
		return err
	}
	k := &kept{o: o, in: in, attempt: core.Attempt{Exclusive: true}}
	o.kept = k
	if o.cfg.Attempt != nil {
		var err error
		if k.attempt, err = o.cfg.Attempt(ctx); err != nil {
			return err
		}
	}
	o.attempt = k.attempt
	name, err := partName(o.cfg.Path, k.attempt, isPart(o))
	if err != nil {
		return err
	}
	k.suffix = name[len(o.cfg.Path):]
	if err := k.survey(ctx, o.cfg.Path, at); err != nil {
		return pathError(o.cfg.Path, err)
	}
	if at == nil {
		if k.part, err = in.Create(ctx, o.cfg.Path, k.suffix); err != nil {
			return pathError(o.cfg.Path, err)
		}
		o.at = OutputPosition{Path: o.cfg.Path, Part: k.suffix, Form: o.cfg.form()}
	} else if err := k.resume(ctx, *at); err != nil || o.finished {
		return err
	}
	return beginProduct(ctx, o)
}

// resume first ends a publication that was begun, unless it was completed: a frozen attempt cannot do so any more.
func (k *kept) resume(ctx context.Context, at OutputPosition) error {
	o, ended := k.o, true
	if at.Staged != "" {
		var err error
		if ended, err = k.in.Cancel(ctx, at.Path, at.published(), at.Staged); err != nil {
			return pathError(at.Path, err)
		}
	}
	published, err := k.in.Published(ctx, at.Path)
	if err != nil {
		return pathError(at.Path, err)
	}
	if published == at.published() {
		o.at, o.finished = at, true
		return nil
	}
	if !ended {
		return exception.Fatal("", fmt.Errorf("cannot restart: the publication of %s that this step began is gone, and the file is not this step's: it was published and then replaced, or its store gave the publication up; look at the file, and restart with --from-start to write it again", at.Path))
	}
	from := place.Marked{Path: at.Path, Part: at.Part, Size: at.Offset, Sum: at.Sum}
	into := k.suffix
	if k.attempt.Exclusive && at.Path == o.cfg.Path {
		into, k.suffix = "", at.Part
		k.earlier = slices.DeleteFunc(k.earlier, func(m place.Marked) bool { return m.Part == at.Part })
	}
	k.part, err = k.in.Resume(ctx, from, o.cfg.Path, into)
	var content *place.ContentError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot restart: %s is gone, with its %d committed bytes, and %s is not the file that the step would have published; restart with --from-start, or restore the file",
			at.Path+at.Part, at.Offset, at.Path)
	case errors.As(err, &content):
		return fmt.Errorf("cannot restart: %s: %w", at.Path+at.Part, err)
	case err != nil:
		return pathError(at.Path, err)
	}
	at.Path, at.Part, at.Staged, at.Made = o.cfg.Path, k.suffix, "", nil
	o.at = at
	return nil
}

// survey notes the parts of earlier attempts of the step, also at other paths.
func (k *kept) survey(ctx context.Context, path string, at *OutputPosition) error {
	paths, needed := []string{path}, neededByOthers(k.attempt, at)
	if at != nil {
		paths = append(paths, at.Path)
	}
	for _, left := range k.attempt.Left {
		var position OutputPosition
		if json.Unmarshal(left, &position) == nil && position.Path != "" {
			paths = append(paths, position.Path)
		}
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		list, err := k.in.Parts(ctx, path)
		if err != nil {
			return err
		}
		for _, part := range list {
			of, is := ownerOf(partPattern(), part)
			if is && of.isOf(k.attempt) && !needed[part] && !(k.o.cfg.Together && of.isPartOf(k.attempt)) {
				k.earlier = append(k.earlier, place.Marked{Path: path, Part: part})
			}
		}
	}
	return nil
}

func (k *kept) cut(at OutputPosition) error {
	o := k.o
	if err := k.part.Cut(at.Offset, at.Sum); err != nil {
		return pathError(o.cfg.Path, err)
	}
	if at.Offset == 0 {
		at.Form = o.cfg.form()
	}
	at.Part = k.suffix
	o.begins(at)
	return nil
}

func (k *kept) append(p []byte) (int, error) {
	o := k.o
	n, err := k.part.Write(p)
	o.at.Sum = crc32.Update(o.at.Sum, castagnoli(), p[:n])
	o.at.Offset += int64(n)
	o.dirty = true
	if err != nil {
		return n, pathError(o.cfg.Path, err)
	}
	return n, nil
}

// release may forget earlier parts: no position names them any more.
func (k *kept) release(ctx context.Context) error {
	for len(k.earlier) > 0 {
		m := k.earlier[0]
		if err := k.in.Withdraw(ctx, m.Path, m.Part); err != nil {
			return fmt.Errorf("remove the files of an earlier attempt: %w", pathError(m.Path+m.Part, err))
		}
		k.earlier = k.earlier[1:]
	}
	k.o.named = true
	if k.o.finished || k.o.staged {
		return nil
	}
	return k.part.Kept(ctx)
}

func (k *kept) stage(ctx context.Context) (token string, err error) {
	part := k.part
	if k.o.made != nil {
		part = k.o.made.part
	}
	if token, err = part.Stage(ctx); err != nil {
		return "", pathError(k.o.cfg.Path, err)
	}
	return token, nil
}

func (k *kept) finish(ctx context.Context) error {
	o := k.o
	if !o.finished {
		part := k.part
		if o.made != nil {
			part = o.made.part
		}
		if !o.staged {
			return notStaged(o.cfg.Path)
		}
		if err := part.Publish(ctx, o.body.Staged); err != nil {
			return pathError(o.cfg.Path, err)
		}
		o.at.Made, o.finished = o.body.Made, true
	}
	if err := k.in.Withdraw(ctx, o.at.Path, o.at.Part); err != nil {
		return err
	}
	var errs []error
	for _, path := range joinedPaths(o) {
		errs = append(errs, RemoveParts(ctx, k.attempt, path))
	}
	if o.at.Made == nil {
		return errors.Join(errs...)
	}
	// A later attempt finds the file by the part that it was published from, which goes last.
	return k.in.Withdraw(ctx, o.at.Path, o.at.Made.Part)
}

func (k *kept) take(ctx context.Context, list []piece) error {
	for _, p := range list {
		var head Base
		if p.skip > 0 {
			head = *p.Head
		}
		err := k.part.Take(place.Marked{Path: p.Path, Part: p.Part, Size: p.Offset, Sum: p.Sum}, head.Size, head.Sum)
		var content *place.ContentError
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s, a finished part of the file, is gone: restart with --from-start%w", p.Path+p.Part, silent{err})
		case errors.As(err, &content):
			return fmt.Errorf("%s: %w; restore it, or restart with --from-start", p.Path+p.Part, err)
		case err != nil:
			return pathError(p.Path+p.Part, err)
		}
	}
	return nil
}

func (k *kept) close() error {
	o := k.o
	o.kept = nil
	if k.part == nil {
		return nil
	}
	if err := errors.Join(k.part.Close(o.named || o.requested), closeProduct(o)); err != nil {
		return pathError(o.cfg.Path, err)
	}
	return nil
}

// RemoveParts removes the parts of a file that attempts of a step, up to one, left in a place without locks.
func RemoveParts(ctx context.Context, of core.Attempt, path string) error {
	in, err := keeper(ctx, path)
	if err != nil {
		return err
	}
	list, err := in.Parts(ctx, path)
	errs := []error{err}
	for _, part := range list {
		if w, is := ownerOf(partPattern(), part); is && w.isOf(of) {
			errs = append(errs, in.Withdraw(ctx, path, part))
		}
	}
	return errors.Join(errs...)
}
