package place

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"

	"github.com/surfin-batch/surfin/internal/urlpath"
)

// Finding is whether one ability of a place works.
type Finding struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// Check makes the requests of jobs at a file or a folder, and removes its own files. It ends at a failure.
func Check(ctx context.Context, url string, write bool) ([]Finding, error) {
	folder, err := urlpath.Folder(url)
	if err != nil {
		return nil, err
	}
	in, err := Of(ctx, folder+"/x")
	if err != nil {
		return nil, err
	}
	c := &checking{ctx: ctx, in: in}
	if file, err := urlpath.Text(url); err == nil && !strings.HasSuffix(url, "/") {
		if _, err := in.Stat(ctx, file); err == nil {
			c.try("read "+file, func() error { return c.readFirst(file) })
			folder = file[:strings.LastIndexByte(file, '/')]
		}
	}
	c.try("list "+folder+"/*", func() error {
		_, err := in.Find(ctx, folder+"/*")
		return err
	})
	if write {
		c.write(folder + "/surfin-check-" + random())
	}
	return c.found, nil
}

func random() string { return strings.ToLower(rand.Text()[:8]) }

type checking struct {
	ctx   context.Context
	in    Place
	found []Finding
	broke bool
}

func (c *checking) try(name string, f func() error) {
	if c.broke {
		return
	}
	one := Finding{Name: name}
	if err := f(); err != nil {
		one.Error, c.broke = err.Error(), true
	}
	c.found = append(c.found, one)
}

func (c *checking) readFirst(url string) error {
	f, err := c.in.Open(c.ctx, url)
	if err != nil {
		return err
	}
	from := f.From(0)
	_, err = from.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, from.Close(), f.Close())
}

// write goes through the life of a file that a killed process began.
func (c *checking) write(url string) {
	k, is := c.in.(Keeper)
	if !is {
		c.try("write", func() error { return errors.New("files of this place can only be read") })
		return
	}
	w := &writing{checking: c, k: k, url: url}
	c.try("write "+url, func() error { return w.create("one\n") })
	c.try("continue it elsewhere", w.resume)
	c.try("publish it", w.publish)
	c.try("read it at an offset", func() error { return w.read("two\n", 4) })
	c.try("notice that it is replaced while it is read", w.replace)
	c.try("end a publication of an attempt that was frozen", w.fence)
	if len(w.names) > 0 {
		c.broke = false
		c.try("remove it", w.remove)
	}
}

type writing struct {
	*checking
	k     Keeper
	url   string
	part  Part
	name  string // of the part
	names []string
}

func (w *writing) next() string {
	w.name = ".part.000000000000-1-" + random()
	w.names = append(w.names, w.name)
	return w.name
}

func (w *writing) create(text string) (err error) {
	if w.part, err = w.k.Create(w.ctx, w.url, w.next()); err != nil {
		return err
	}
	return w.append(text)
}

func (w *writing) append(text string) error {
	if _, err := io.WriteString(w.part, text); err != nil {
		return err
	}
	return w.part.Sync()
}

func (w *writing) resume() (err error) {
	const text = "one\n"
	from := Marked{Path: w.url, Part: w.name, Size: int64(len(text)), Sum: crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))}
	if w.part, err = w.k.Resume(w.ctx, from, w.url, w.next()); err != nil {
		return err
	}
	return errors.Join(w.append("two\n"), w.k.Withdraw(w.ctx, w.url, from.Part))
}

func (w *writing) publish() error {
	token, err := w.part.Stage(w.ctx)
	if err != nil {
		return err
	}
	if err := w.part.Publish(w.ctx, token); err != nil {
		return err
	}
	published, err := w.k.Published(w.ctx, w.url)
	if err == nil && published != w.name {
		err = fmt.Errorf("it was published, but the place says that its part is %q", published)
	}
	return errors.Join(err, w.k.Withdraw(w.ctx, w.url, w.name))
}

func (w *writing) read(want string, at int64) error {
	f, err := w.in.Open(w.ctx, w.url)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(f.From(at))
	if err == nil && string(text) != want {
		err = fmt.Errorf("the bytes from %d on are %q, but %q was written", at, text, want)
	}
	return errors.Join(err, f.Close())
}

func (w *writing) replace() error {
	f, err := w.in.Open(w.ctx, w.url)
	if err != nil {
		return err
	}
	if err := w.create("three\n"); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := w.publish(); err != nil {
		return errors.Join(err, f.Close())
	}
	if _, err := io.ReadAll(f.From(0)); err == nil {
		return errors.Join(errors.New("a file that was replaced is read on without an error"), f.Close())
	}
	return f.Close()
}

func (w *writing) fence() error {
	if err := w.create("four\n"); err != nil {
		return err
	}
	token, err := w.part.Stage(w.ctx)
	if err != nil {
		return err
	}
	if ended, err := w.k.Cancel(w.ctx, w.url, w.name, token); err != nil || !ended {
		return errors.Join(err, errors.New("its publication could not be ended"))
	}
	if err := w.part.Publish(w.ctx, token); !errors.Is(err, ErrSuperseded) {
		return errors.Join(errors.New("a publication that was ended was completed"), err)
	}
	return w.read("three\n", 0)
}

func (w *writing) remove() error {
	var errs []error
	for _, name := range w.names {
		errs = append(errs, w.k.Withdraw(w.ctx, w.url, name))
	}
	info, err := w.in.Stat(w.ctx, w.url)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(errs...)
	}
	if errs = append(errs, err); err == nil {
		errs = append(errs, w.k.Remove(w.ctx, info))
	}
	left, err := w.k.Parts(w.ctx, w.url)
	if errs = append(errs, err); len(left) > 0 {
		errs = append(errs, fmt.Errorf("parts are left: %s", strings.Join(left, ", ")))
	}
	return errors.Join(errs...)
}
