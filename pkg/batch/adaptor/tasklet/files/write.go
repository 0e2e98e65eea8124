package filetask

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/surfin-batch/surfin/internal/filestream"
	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
)

// move copies to another disk.
func (r *run) move(ctx context.Context, j job) error {
	err := r.publish(j.from, j.to)
	if errors.Is(err, syscall.EXDEV) {
		return r.write(ctx, j)
	}
	return err
}

// publish replaces another file only if it may. If possible, the old name stays until it is removed: with a
// link the system itself refuses a used name.
func (r *run) publish(from, to string) error {
	if !r.config.Overwrite {
		err := r.around("link", from, func() error { return r.disk.Link(from, to) })
		switch {
		case err == nil:
			return nil
		case errors.Is(err, fs.ErrExist):
			return fmt.Errorf("%s was created since the step began: %w", to, fs.ErrExist)
		}
		// No links here, as on FAT, or not for this user.
		if _, err := r.disk.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s was created since the step began: %w", to, fs.ErrExist), err)
		}
	}
	return r.around("rename", from, func() error { return r.disk.Rename(from, to) })
}

// The file is complete and synced before it gets its name.
func (r *run) write(ctx context.Context, j job) error {
	in, err := place.Open(ctx, j.from)
	if err != nil {
		return fmt.Errorf("%s: %w", j.from, err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	fill := func(out io.Writer) error {
		if err := r.convert(out, r.reader(ctx, in)); err != nil {
			return fmt.Errorf("%s: %w", j.from, err)
		}
		return r.unchanged(in, j)
	}
	if urlpath.Is(j.to) {
		return r.put(ctx, j.to, fill)
	}
	mode := fs.FileMode(0o600)
	if j.file != nil {
		mode = j.file.Mode().Perm()
	}
	temp := r.temp(j.to)
	if err := r.writeTemp(temp, mode, fill); err != nil {
		return errors.Join(err, r.remove(temp))
	}
	if r.op == opMove {
		if err := r.disk.Chtimes(temp, j.info.Modified, j.info.Modified); err != nil {
			return errors.Join(err, r.remove(temp))
		}
	}
	return errors.Join(r.publish(temp, j.to), r.remove(temp))
}

func (r *run) temp(of string) string {
	return filepath.Join(filepath.Dir(of), "."+filepath.Base(of)+r.mark()+rand.Text()[:8])
}

// put writes a file in another place than the disk.
func (r *run) put(ctx context.Context, to string, fill func(io.Writer) error) error {
	return r.around("put", to, func() error {
		return filestream.Put(ctx, to, r.attempt, fill, func(ctx context.Context) error {
			if r.commit == nil {
				return nil
			}
			return r.commit(ctx)
		})
	})
}

// unchanged refuses a file that was changed or replaced while it was read.
func (r *run) unchanged(in place.File, j job) error {
	changed := fmt.Errorf("%s changed while it was read: wait until it is complete, as the tasklet wait_file does", j.from)
	if j.file == nil {
		now, err := in.Now()
		if err == nil && (now != j.info || in.Opened() != j.info) {
			err = changed
		}
		return err
	}
	named, err := r.disk.Lstat(j.from)
	if err != nil {
		return err
	}
	if !os.SameFile(j.file, named) || named.Size() != j.file.Size() || !named.ModTime().Equal(j.file.ModTime()) || in.Opened() != j.info {
		return changed
	}
	return nil
}

func (r *run) writeTemp(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	return r.around("write", name, func() error {
		out, err := r.disk.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = fill(out)
		if err == nil {
			err = out.Chmod(mode)
		}
		if err == nil {
			err = out.Sync()
		}
		return errors.Join(err, out.Close())
	})
}

func (r *run) convert(out io.Writer, in io.Reader) error {
	switch r.op {
	case opGzip:
		z := gzip.NewWriter(out)
		if _, err := io.Copy(z, in); err != nil {
			return err
		}
		return z.Close()
	case opGunzip:
		z, err := gzip.NewReader(bufio.NewReader(in))
		if err != nil {
			return fmt.Errorf("it is not compressed with gzip: %w", err)
		}
		in = z
	}
	_, err := io.Copy(out, in)
	return err
}

func (r *run) sameContent(ctx context.Context, from, to string) (same bool, err error) {
	a, err := place.Open(ctx, from)
	if err != nil {
		return false, fmt.Errorf("%s: %w", from, err)
	}
	defer a.Close() //nolint:errcheck // it is only read
	b, err := place.Open(ctx, to)
	if err != nil {
		return false, fmt.Errorf("%s: %w", to, err)
	}
	defer b.Close() //nolint:errcheck // likewise
	left, right := r.reader(ctx, a), r.reader(ctx, b)
	switch r.op {
	case opGzip:
		if right, err = gzip.NewReader(bufio.NewReader(right)); err != nil {
			return false, nil //nolint:nilerr // it is another file, then
		}
	case opGunzip:
		if left, err = gzip.NewReader(bufio.NewReader(left)); err != nil {
			return false, fmt.Errorf("%s is not compressed with gzip: %w", from, err)
		}
	default:
		if a.Opened().Size != b.Opened().Size {
			return false, nil
		}
	}
	same, err = equal(left, right)
	if stopped := r.checkStop(ctx); stopped != nil {
		return false, stopped
	}
	if err != nil && r.op == opGzip {
		return false, nil // the end of a compressed file is missing
	}
	return same, err
}

// A truncated stream is an error.
func equal(a, b io.Reader) (bool, error) {
	x, y := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, endA, err := fill(a, x)
		if err != nil {
			return false, err
		}
		m, endB, err := fill(b, y)
		if err != nil || !bytes.Equal(x[:n], y[:m]) {
			return false, err
		}
		if endA && endB {
			return true, nil
		}
	}
}

func fill(in io.Reader, p []byte) (n int, end bool, err error) {
	for n < len(p) {
		m, err := in.Read(p[n:])
		n += m
		if err == io.EOF { //nolint:errorlint // the end is io.EOF itself
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

func (r *run) reader(ctx context.Context, of place.File) io.Reader {
	in := of.From(0)
	return readerFunc(func(p []byte) (int, error) {
		if err := r.checkStop(ctx); err != nil {
			return 0, err
		}
		return in.Read(p)
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func newHash(algorithm string) (hash.Hash, bool) {
	switch cmp.Or(algorithm, "sha256") {
	case "sha256":
		return sha256.New(), true
	case "sha512":
		return sha512.New(), true
	case "sha1":
		return sha1.New(), true //nolint:gosec // compared with a sender's sum
	case "md5":
		return md5.New(), true //nolint:gosec // likewise
	}
	return nil, false
}

func (r *run) checksums(ctx context.Context, jobs []job) error {
	if r.config.Equals != "" && len(jobs) > 1 {
		return fmt.Errorf("equals: %d files match, but it is the checksum of one", len(jobs))
	}
	var list strings.Builder
	for _, j := range jobs {
		sum, err := r.sum(ctx, j.from)
		if err != nil {
			return err
		}
		r.files++
		r.bytes += j.info.Size
		r.checksum = sum
		fmt.Fprintf(&list, "%s  %s\n", sum, filepath.ToSlash(relative(j.from, r.config.As)))
	}
	if len(jobs) > 1 {
		r.checksum = ""
	}
	if r.config.Equals != "" && !strings.EqualFold(r.config.Equals, r.checksum) {
		return fmt.Errorf("%s has the %s checksum %s, but %s is expected: it is not the file that was sent, or it is incomplete",
			jobs[0].from, cmp.Or(r.config.Algorithm, "sha256"), r.checksum, strings.ToLower(r.config.Equals))
	}
	if r.config.As == "" {
		return nil
	}
	r.path = r.config.As
	return r.writeList(ctx, list.String())
}

// relative is a name as a list of checksums has it.
func relative(name, list string) string {
	if list == "" || urlpath.Is(name) != urlpath.Is(list) {
		return name
	}
	if urlpath.Is(name) {
		folder, _ := filepath.Split(list)
		return strings.TrimPrefix(name, folder)
	}
	if rel, err := filepath.Rel(filepath.Dir(list), name); err == nil {
		return rel
	}
	return name
}

func (r *run) sum(ctx context.Context, name string) (string, error) {
	in, err := place.Open(ctx, name)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	h, _ := newHash(r.config.Algorithm)
	if _, err := io.Copy(h, r.reader(ctx, in)); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (r *run) writeList(ctx context.Context, text string) error {
	to := r.config.As
	was, err := readAll(ctx, to)
	switch {
	case err == nil && string(was) == text:
		return nil
	case err == nil && !r.config.Overwrite:
		return fmt.Errorf("%s exists already, with other checksums: remove it, or set `overwrite: true`", to)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", to, err)
	}
	fill := func(out io.Writer) error {
		_, err := io.WriteString(out, text)
		return err
	}
	if urlpath.Is(to) {
		return r.put(ctx, to, fill)
	}
	if err := r.makeFolderOf(ctx, to); err != nil {
		return err
	}
	temp := r.temp(to)
	if err = r.writeTemp(temp, 0o644, fill); err == nil {
		err = r.publish(temp, to)
	}
	return errors.Join(err, r.remove(temp), r.syncFolderOf(ctx, to))
}

func readAll(ctx context.Context, name string) ([]byte, error) {
	in, err := place.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it is only read
	return io.ReadAll(in.From(0))
}
