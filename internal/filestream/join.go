package filestream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/exception"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// isPart reports whether the output is a part of a file that the whole step publishes (rule C15w).
func isPart(o *Output) bool { return o.cfg.Together && o.attempt.Manager != 0 }

// EndHead marks the bytes so far as the beginning that only the first of several joined parts keeps.
func EndHead(o *Output) error {
	if !isPart(o) || o.at.Offset == 0 && !o.inMember {
		return nil
	}
	if o.inMember {
		if err := o.frames.Close(); err != nil {
			return err
		}
		o.inMember = false
	}
	o.at.Head = &Base{Size: o.at.Offset, Sum: o.at.Sum}
	return nil
}

// finishPart leaves the part to Join.
func finishPart(o *Output) error {
	if err := o.Sync(); err != nil {
		return err
	}
	o.finished = true
	return o.Close()
}

// Joined are the parts of one file, in order.
type Joined []OutputPosition

// JoinedAt reads the last positions of parts. One without a position has no bytes.
func JoinedAt(parts []item.Position) (Joined, error) {
	list := make(Joined, len(parts))
	for i, at := range parts {
		if at == nil {
			continue
		}
		if err := json.Unmarshal(at, &list[i]); err != nil {
			return nil, fmt.Errorf("the stored position of part %d is unreadable: %w", i+1, err)
		}
		if of, is := ownerOf(partPattern(), list[i].Part); !is || of.step == "" {
			return nil, exception.Fatal("", fmt.Errorf("%s was not written together with the other parts: restart with --from-start", list[i].Path))
		}
	}
	return list, nil
}

// piece is the share of a part in the whole file.
type piece struct {
	OutputPosition
	skip, size int64
	sum        uint32 // CRC-32C
}

// pieces also returns the end of the whole file.
func (j Joined) pieces() (list []piece, end OutputPosition) {
	for _, at := range j {
		p := piece{OutputPosition: at, size: at.Offset, sum: at.Sum}
		if at.Offset == 0 {
			continue
		}
		if len(list) > 0 && at.Head != nil {
			p.skip, p.size = at.Head.Size, at.Offset-at.Head.Size
			p.sum = at.Sum ^ shifted(at.Head.Sum, p.size)
		}
		end.Offset += p.size
		end.Sum = shifted(end.Sum, p.size) ^ p.sum
		list = append(list, p)
	}
	return list, end
}

// Join is Open for the whole file of finished parts, which it copies. It continues from a position of the same content,
// and ignores others.
func Join(ctx context.Context, o *Output, at *OutputPosition, parts Joined) error {
	list, end := parts.pieces()
	if at != nil && (end.Offset == 0 || at.Offset != end.Offset || at.Sum != end.Sum) {
		at = nil
	}
	o.joined = parts
	if err := o.Open(ctx, at); err != nil || at != nil || len(list) == 0 {
		return err
	}
	if err := takeForm(o, list); err != nil {
		return err
	}
	var err error
	if o.kept != nil {
		err = o.kept.take(ctx, list)
	} else {
		err = takeParts(ctx, o, list)
	}
	if err != nil {
		return err
	}
	o.at.Offset, o.at.Sum, o.dirty = end.Offset, end.Sum, true
	if err := o.Sync(); err != nil || o.kept != nil { // a place names its bytes by their checksums
		return err
	}
	return verify(ctx, o, list)
}

func takeParts(ctx context.Context, o *Output, list []piece) error {
	rest, err := adopt(o, list)
	if err != nil {
		return err
	}
	for _, p := range rest {
		if err := copyPiece(ctx, o, p); err != nil {
			return err
		}
	}
	return nil
}

// takeForm refuses parts in different forms.
func takeForm(o *Output, list []piece) error {
	first := list[0]
	for _, p := range append(list[1:], piece{OutputPosition: OutputPosition{Path: o.cfg.Path, Form: o.cfg.form()}}) {
		for _, name := range settings(p.Form) {
			if first.Form[name] != p.Form[name] {
				return exception.Fatal("", fmt.Errorf("%s has %s %s, but %s has %s: the parts of one file have one format; restart with --from-start",
					first.Path+first.Part, name, first.Form[name], p.Path+p.Part, p.Form[name]))
			}
		}
	}
	o.at.Form = first.Form
	return nil
}

// adopt continues the first part under the name of the whole file, instead of copying it, and returns the others. The
// part keeps its own name, too, and its committed bytes, so a restart finds it. If an earlier attempt of the step may
// wake, all parts are copied, since it could write to the published file.
func adopt(o *Output, list []piece) ([]piece, error) {
	name := list[0].Path + list[0].Part
	if !o.attempt.Exclusive {
		return list, nil
	}
	o.files.Free(list[0].Path) // a part was admitted to it
	file, err := openPart(o.files, name, os.O_RDWR)
	if err != nil {
		return list, nil //nolint:nilerr // its copy explains it
	}
	own, err := partName(o.cfg.Path, o.attempt, false)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if info, err := file.Stat(); err != nil || info.Size() < list[0].size || lockFile(file) != nil || o.files.Link(name, own) != nil {
		return list, file.Close()
	}
	empty := o.name
	err = o.file.Close()
	o.file, o.name = file, own
	o.at.Part = o.part()
	if err == nil {
		err = o.disk.Remove(empty)
	}
	if err == nil {
		err = file.Truncate(list[0].size)
	}
	if err == nil {
		_, err = file.Seek(list[0].size, io.SeekStart)
	}
	if err != nil {
		return nil, pathError(o.name, err)
	}
	return list[1:], o.disk.SyncDir(filepath.Dir(o.name))
}

// copyBytes bounds the time until a canceled context is noticed.
const copyBytes = 64 << 20

// copyPiece leaves the bytes to the kernel where it can copy them.
func copyPiece(ctx context.Context, o *Output, p piece) error {
	name := p.Path + p.Part
	o.files.Free(p.Path) // a part was admitted to it
	file, err := openPart(o.files, name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return missingPart(name)
	}
	if err != nil {
		return pathError(name, err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	if _, err := file.Seek(p.skip, io.SeekStart); err != nil {
		return pathError(name, err)
	}
	for left := p.size; left > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := o.file.ReadFrom(io.LimitReader(file, min(left, copyBytes)))
		if err == nil && n == 0 {
			return fmt.Errorf("%s has less than its %d committed bytes: it was changed or replaced; restore it, or restart with --from-start", name, p.Offset)
		}
		if err != nil {
			return fmt.Errorf("copy %s to %s: %w", name, o.name, err)
		}
		left -= n
	}
	return nil
}

func missingPart(name string) error {
	machine, _ := os.Hostname() //nolint:errcheck // the path is the main thing
	machine = cmp.Or(machine, "this machine")
	return fmt.Errorf("%s, a finished part of the file, is not on %s: if workers of other machines wrote it, put the file into a folder that all machines share under this path, and restart; if it is lost, restart with --from-start%w",
		name, machine, silent{fs.ErrNotExist})
}

// verify reads the whole file back: neither the parts nor the copy have changed.
func verify(ctx context.Context, o *Output, list []piece) error {
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return pathError(o.name, err)
	}
	from := reader{ctx, o.file}
	for _, p := range list {
		sum := crc32.New(castagnoli())
		if n, err := io.CopyBuffer(sum, io.LimitReader(from, p.size), make([]byte, verifyBytes)); err != nil || n != p.size {
			return pathError(o.name, cmp.Or(err, io.ErrUnexpectedEOF))
		}
		if sum.Sum32() != p.sum {
			return fmt.Errorf("the %d committed bytes of %s have changed since (their checksum is different): restore the file, or restart with --from-start", p.Offset, p.Path+p.Part)
		}
	}
	return nil
}

const verifyBytes = 256 << 10

// joinedPaths are the targets of all parts to remove, also of earlier attempts.
func joinedPaths(o *Output) []string {
	if o.joined == nil {
		return nil
	}
	paths := []string{o.cfg.Path}
	for _, at := range o.joined {
		paths = append(paths, at.Path)
	}
	for _, left := range o.attempt.Left {
		var at OutputPosition
		if json.Unmarshal(left, &at) == nil {
			paths = append(paths, at.Path)
		}
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(path string) bool { return path == "" })
}

func removeJoined(o *Output) error {
	var errs []error
	for _, path := range joinedPaths(o) {
		o.files.Free(path) // a part was admitted to it
		names, err := partsOf(o.files, path, func(of owner) bool { return of.isPartOf(o.attempt) })
		errs = append(errs, err)
		for _, name := range names {
			if err := o.disk.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, pathError(name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// shifted is the CRC-32C of bytes, without its inversions, after n zero bytes: the sum of two texts is
// shifted(sum of the first, length of the second) ^ sum of the second.
func shifted(sum uint32, n int64) uint32 {
	x := uint32(1) << 23 // x^8, in reversed bits
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			sum = times(x, sum)
		}
		x = times(x, x)
	}
	return sum
}

// times multiplies polynomials modulo the one of CRC-32C.
func times(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.Castagnoli
		} else {
			b >>= 1
		}
	}
	return product
}
