package memory_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dgrdma/dgrdma/rdmap/ddp"
	"github.com/dgrdma/dgrdma/rdmap/memory"
	"github.com/dgrdma/dgrdma/tests/fixture"
)

// roles are what this program does instead of testing, in a process of its own. A role has the
// file on descriptor 3, and exits with a message if something is wrong.
var roles = map[string]func(file *os.File) error{
	"flush":   flushRecords,
	"outgrow": outgrowLimit,
	"crowded": verifyCrowded,
	"fill":    fillDisk,
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv("MEMORY_ROLE")]
	if role == nil {
		fixture.EndHangs()
		os.Exit(m.Run())
	}
	if err := role(os.NewFile(3, os.Getenv("MEMORY_FILE"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func process(t *testing.T, role string, file *os.File) *exec.Cmd {
	c := exec.CommandContext(t.Context(), "/proc/self/exe") // which nobody may start as well, wherever it is
	c.Env = append(os.Environ(), "MEMORY_ROLE="+role, "MEMORY_FILE="+file.Name())
	c.ExtraFiles = []*os.File{file}
	c.Stderr = new(bytes.Buffer)
	return c
}

const (
	record  = 1000 // neither words nor pages
	records = 5000
)

// recordOf is what record i consists of.
func recordOf(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 0xa5, 1}, record/4) }

// flushRecords writes records, flushes each, and tells of it.
func flushRecords(file *os.File) error {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	region, err := domain.RegisterFile(file, 0, record*records, memory.RemoteWrite|memory.FlushPersistent, nil)
	if err != nil {
		return err
	}
	for i := range records {
		to := uint64(i * record)
		if err := write(stream, region.STag(), to, recordOf(i)); err != nil {
			return err
		}
		if err := stream.Flush(context.Background(), region.STag(), to, record, memory.FlushPersistent); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

// TestFlushedSurvivesAKill (COMMIT-010, COMMIT-012): what a Flush said is in storage another process
// finds there, when the one that wrote it was killed at any moment. As an ordinary user too.
func TestFlushedSurvivesAKill(t *testing.T) {
	random := seeded(t)
	for run := range 6 {
		f := newFile(t, 0)
		if err := f.Chmod(0o666); err != nil {
			t.Fatal(err)
		}
		c := process(t, "flush", f)
		if run%2 == 0 && os.Geteuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		told, until := -1, random.IntN(60)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if told++; lines.Text() != fmt.Sprint(told) {
				t.Fatalf("told of %q after %d", lines.Text(), told-1)
			}
			if told == until {
				c.Process.Kill()
			}
		}
		if err := c.Wait(); told < until || err == nil || err.Error() != "signal: killed" {
			t.Fatalf("told of %d, not of %d: %v: %v", told, until, err, c.Stderr)
		}
		// Other processes read it: cmp and this one, past the system's copies where that is possible.
		var want bytes.Buffer
		for i := range told + 1 {
			want.Write(recordOf(i))
		}
		copied := filepath.Join(t.TempDir(), "want")
		if err := os.WriteFile(copied, want.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("cmp", "-n", fmt.Sprint(want.Len()), f.Name(), copied).CombinedOutput(); err != nil {
			t.Errorf("killed at %d: %s", told, out)
		}
		domain := memory.NewTable().NewDomain()
		r := registerFile(t, domain, f, 0, record*records, memory.RemoteRead|memory.Verify, &memory.Options{Algorithm: memory.SHA256})
		if _, err := domain.NewStream().Verify(t.Context(), r.STag(), 0, uint32(want.Len()), hashOf(memory.SHA256, want.Bytes())); err != nil {
			t.Errorf("killed at %d: %v", told, err)
		}
	}
}

// outgrowLimit registers more of a file than the process may write.
func outgrowLimit(file *os.File) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		return err
	}
	domain := memory.NewTable().NewDomain()
	_, err := domain.RegisterFile(file, 1<<19, 1<<20, everything&^memory.Verify, nil)
	var path *os.PathError
	if !errors.As(err, &path) || path.Path != file.Name() || !errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("registering more than the limit: %v", err)
	}
	if info, err := file.Stat(); err != nil || info.Size() != 100 {
		return fmt.Errorf("the file has %d bytes after that, %v", info.Size(), err)
	}
	_, err = domain.RegisterFile(file, 1<<19, 1<<19, everything&^memory.Verify, nil)
	return err
}

// TestFileOutgrowsItsLimit: it is an error to register what there is no room for, and the file is as before.
func TestFileOutgrowsItsLimit(t *testing.T) {
	if c := process(t, "outgrow", newFile(t, 100)); c.Run() != nil {
		t.Errorf("%v", c.Stderr)
	}
}

// verifyCrowded verifies when no file can be opened any more, not even to read past the system's
// copies.
func verifyCrowded(file *os.File) error {
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	region, err := domain.RegisterFile(file, 777, 10_000, memory.RemoteRead|memory.RemoteWrite|memory.Verify, &memory.Options{Algorithm: memory.SHA256})
	if err != nil {
		return err
	}
	content := recordOf(7)
	if err := write(stream, region.STag(), 5000, content); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{}); err != nil {
		return err
	}
	_, err = stream.Verify(context.Background(), region.STag(), 5000, record, hashOf(memory.SHA256, content))
	return err
}

// TestVerifyWithoutDirectReads: through the system's copies, where there is no other way.
func TestVerifyWithoutDirectReads(t *testing.T) {
	if c := process(t, "crowded", newFile(t, 0)); c.Run() != nil {
		t.Errorf("%v", c.Stderr)
	}
}

// errNoDisk says that this process may not mount one.
var errNoDisk = errors.New("no small disk here")

// fillDisk mounts a small disk, which only this process sees, and fills it.
func fillDisk(outside *os.File) error {
	const room = 1 << 20
	dir := filepath.Dir(outside.Name())
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: %w", errNoDisk, err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", room)); err != nil {
		return fmt.Errorf("%w: %w", errNoDisk, err)
	}
	file, err := os.Create(filepath.Join(dir, "sparse"))
	if err == nil {
		err = file.Truncate(4 * room) // the disk has no room for that
	}
	if err != nil {
		return err
	}
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	for _, length := range []int64{4 * room, 5 * room} {
		_, err := domain.RegisterFile(file, 0, length, memory.RemoteWrite, nil)
		if info, _ := file.Stat(); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), file.Name()) || info.Size() != 4*room {
			return fmt.Errorf("registering %d bytes on a full disk: %v; the file has %d", length, err, info.Size())
		}
	}
	// What fits is there, whoever fills the disk then.
	region, err := domain.RegisterFile(file, 0, room/2, memory.RemoteWrite, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), make([]byte, room), 0o600); !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("filling the disk: %v", err)
	}
	all := make([]byte, room/2)
	if err := write(stream, region.STag(), 0, all); err != nil {
		return fmt.Errorf("writing on a full disk: %v", err)
	}
	// Somebody takes the file's room away, and uses it.
	if err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, room/2); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "another"), all, 0o600); err != nil {
		return err
	}
	if err := write(stream, region.STag(), 0, all); err != ddp.LocalDDP {
		return fmt.Errorf("writing where the disk has no room any more: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "another")); err != nil {
		return err
	}
	return write(stream, region.STag(), 0, all)
}

// TestFullDisk (COMMIT-015): to register what it has no room for is an error, and so is to write where it has
// none any more.
func TestFullDisk(t *testing.T) {
	c := process(t, "fill", newFile(t, 0))
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 { // who may mount nothing may do so in a namespace of users
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	err := c.Run()
	if said := fmt.Sprint(c.Stderr); errors.Is(err, unix.EPERM) || strings.Contains(said, errNoDisk.Error()) {
		t.Skipf("this user may not mount a small disk, in a namespace neither: %v %s", err, said)
	} else if err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// dirty is how much of a region's file is changed and not in storage, as the kernel counts it.
func dirty(t *testing.T, f *os.File) (kilobytes int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, ours, found := strings.Cut(string(b), f.Name()+"\n")
	if !found {
		t.Fatalf("%s is not mapped", f.Name())
	}
	for _, kind := range []string{"Shared_Dirty:", "Private_Dirty:"} {
		_, value, _ := strings.Cut(ours, kind)
		n := 0
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		kilobytes += n
	}
	return kilobytes
}

// TestFlushGoesToStorage (COMMIT-010): after a Flush nothing of its range is left in the system's
// memory only.
func TestFlushGoesToStorage(t *testing.T) {
	f := newFile(t, 0)
	domain := memory.NewTable().NewDomain()
	stream := domain.NewStream()
	const size = 256 << 10
	region := registerFile(t, domain, f, 0, size, everything&^memory.Verify, nil)
	for range 5 {
		// The system may bring it to storage whenever it likes, but not always at once.
		was := 0
		for range 1000 {
			if err := write(stream, region.STag(), 0, make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if was = dirty(t, f); was == size>>10 {
				break
			}
		}
		if was != size>>10 {
			t.Fatalf("the kernel counts %d kB after a write of %d", was, size>>10)
		}
		if err := stream.Flush(t.Context(), region.STag(), 1, size-2, memory.FlushPersistent); err != nil {
			t.Fatal(err)
		}
		if is := dirty(t, f); is != 0 {
			t.Fatalf("%d kB of %d are not in storage after Flush", is, was)
		}
	}
}
