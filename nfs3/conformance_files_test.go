package nfs3_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
	"github.com/dgrdma/dgrdma/nfs3/nfs3test"
)

// TestFiles checks data of files: writes, reads, holes, ends, sizes.
func TestFiles(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		f := u.Create(u.Root, "file", 0o644)
		if f.Attr.Size != 0 || f.Attr.Type != nfs3.TypeRegular || f.Attr.Mode != 0o644 || f.Attr.Links != 1 || f.Attr.FileID == 0 {
			t.Errorf("a new file has %+v", f.Attr)
		}
		u.Write(f.Handle, 5, "hello")
		if got := u.Read(f.Handle, 0, 100); got != "\x00\x00\x00\x00\x00hello" {
			t.Errorf("%q", got)
		}
		u.Write(f.Handle, 200_000, "far")
		if got := u.Read(f.Handle, 199_998, 100); got != "\x00\x00far" || u.GetAttr(f.Handle).Size != 200_003 {
			t.Errorf("%q of %d", got, u.GetAttr(f.Handle).Size)
		}
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Size: new(uint64(7))}))
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Size: new(uint64(12))}))
		if got := u.Read(f.Handle, 0, 100); got != "\x00\x00\x00\x00\x00he\x00\x00\x00\x00\x00" {
			t.Errorf("cut and longer again it is %q", got)
		}
		for _, c := range []struct {
			offset uint64
			n      int
			got    int
			eof    bool
		}{{0, 11, 11, false}, {0, 12, 12, true}, {0, 13, 12, true}, {11, 1, 1, true}, {12, 1, 0, true}, {1 << 40, 1, 0, true}, {1<<63 - 1, 9, 0, true}, {1<<64 - 1, 9, 0, true}} {
			n, eof, err := u.FS.Read(u.Ctx, u.Cred, f.Handle, make([]byte, c.n), c.offset)
			if err != nil || n != c.got || eof != c.eof {
				t.Errorf("read %d at %d: %d, %v, %v", c.n, c.offset, n, eof, err)
			}
		}
		_, _, err := u.FS.Write(u.Ctx, u.Cred, f.Handle, []byte("x"), 1<<64-1, nfs3.Unstable)
		u.Want("a write at the end of all offsets", err, nfs3.ErrFBig)
		u.Want("a size beyond all", u.SetAttr(f.Handle, nfs3.SetAttr{Size: new(uint64(1<<64 - 1))}), nfs3.ErrFBig)
		for stable := range nfs3.FileSync + 1 {
			w, wcc, err := u.FS.Write(u.Ctx, u.Cred, f.Handle, []byte("x"), 1, stable)
			if err != nil || w.Stable < stable || w.Count != 1 || wcc.After.Present && wcc.After.Attr.Size != 12 {
				t.Errorf("%v: %+v, %+v, %v", stable, w, wcc, err)
			}
			verifier, _, err := u.FS.Commit(u.Ctx, u.Cred, f.Handle, 0, 0)
			if err != nil || verifier != w.Verifier {
				t.Errorf("commit: verifier %x, written by %x, %v", verifier, w.Verifier, err)
			}
		}
		locked := u.Create(u.Root, "locked", 0o444)
		u.Write(locked.Handle, 0, "as after an open") // cp -p and git do so
		if a := u.GetAttr(locked.Handle); a.Mode != 0o444 || a.Size != 16 {
			t.Errorf("%+v", a)
		}
		d := u.Mkdir(u.Root, "dir", 0o755)
		_, _, err = u.FS.Read(u.Ctx, u.Cred, d.Handle, make([]byte, 9), 0)
		u.Want("read of a directory", err, nfs3.ErrIsDir)
		_, _, err = u.FS.Write(u.Ctx, u.Cred, d.Handle, make([]byte, 9), 0, nfs3.Unstable)
		u.Want("write of a directory", err, nfs3.ErrIsDir)
		u.Want("size of a directory", u.SetAttr(d.Handle, nfs3.SetAttr{Size: new(uint64(0))}), nfs3.ErrIsDir, nfs3.ErrInval)
		_, _, err = u.FS.Commit(u.Ctx, u.Cred, d.Handle, 0, 0)
		u.Want("commit of a directory", err, nfs3.ErrIsDir, nfs3.ErrInval)
	})
}

// TestCreate checks the three modes of CREATE, and that an exclusive one can be sent again.
func TestCreate(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		create := func(name string, how nfs3.CreateHow) (nfs3.Object, error) {
			o, _, err := u.FS.Create(u.Ctx, u.Cred, u.Root, name, &how)
			return o, err
		}
		a, err := create("a", nfs3.CreateHow{Set: nfs3test.Mode(0o640)})
		u.Must(err)
		u.Write(a.Handle, 0, "data")
		b, err := create("a", nfs3.CreateHow{Set: nfs3test.Mode(0o600)})
		if err != nil || b.Handle != a.Handle || b.Attr.Size != 4 || b.Attr.Mode != 0o640 {
			t.Errorf("unchecked again: %+v, %v", b, err)
		}
		b, err = create("a", nfs3.CreateHow{Set: nfs3.SetAttr{Size: new(uint64(0))}})
		if err != nil || b.Handle != a.Handle || b.Attr.Size != 0 {
			t.Errorf("unchecked with a size: %+v, %v", b, err)
		}
		_, err = create("a", nfs3.CreateHow{Mode: nfs3.Guarded})
		u.Want("guarded again", err, nfs3.ErrExist)
		x, err := create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345678})
		u.Must(err)
		again, err := create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345678})
		if err != nil || again.Handle != x.Handle {
			t.Errorf("exclusive, sent again: %+v, %v", again, err)
		}
		_, err = create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345679})
		u.Want("exclusive of another", err, nfs3.ErrExist)
		_, err = create("a", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 1})
		u.Want("exclusive of a file that is there", err, nfs3.ErrExist)
		u.Must(u.SetAttr(x.Handle, nfs3.SetAttr{Mode: new(uint32(0o600)), SetAtime: nfs3.ServerTime, SetMtime: nfs3.ServerTime}))
		u.Mkdir(u.Root, "d", 0o755)
		for _, how := range []nfs3.CreateMode{nfs3.Unchecked, nfs3.Guarded, nfs3.Exclusive} {
			_, err := create("d", nfs3.CreateHow{Mode: how, Verifier: 3})
			u.Want("create over a directory", err, nfs3.ErrExist)
		}
		_, _, err = u.FS.Create(u.Ctx, u.Cred, a.Handle, "x", &nfs3.CreateHow{})
		u.Want("create in a file", err, nfs3.ErrNotDir)
	})
}

// TestAttributes checks SETATTR: modes, times, the guard.
func TestAttributes(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		f := u.Create(u.Root, "f", 0o644)
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Mode: new(uint32(0o4711)), SetAtime: nfs3.ClientTime, Atime: nfs3.Time{Seconds: 5, Nanoseconds: 6}, SetMtime: nfs3.ClientTime, Mtime: nfs3.Time{Seconds: 7, Nanoseconds: 8}}))
		a := u.GetAttr(f.Handle)
		if a.Mode != 0o4711 || a.Atime != (nfs3.Time{Seconds: 5, Nanoseconds: 6}) || a.Mtime != (nfs3.Time{Seconds: 7, Nanoseconds: 8}) || a.Ctime.Seconds < 1e9 {
			t.Errorf("%+v", a)
		}
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ServerTime}))
		if b := u.GetAttr(f.Handle); b.Mtime.Seconds < 1e9 || b.Atime != a.Atime {
			t.Errorf("%+v", b)
		}
		old := u.GetAttr(f.Handle).Ctime
		_, err := u.FS.SetAttr(u.Ctx, u.Cred, f.Handle, &nfs3.SetAttr{Mode: new(uint32(0o600))}, &nfs3.Time{Seconds: old.Seconds - 1})
		u.Want("another guard", err, nfs3.ErrNotSync)
		_, err = u.FS.SetAttr(u.Ctx, u.Cred, f.Handle, &nfs3.SetAttr{Mode: new(uint32(0o600))}, &old)
		u.Must(err)
		if a := u.GetAttr(f.Handle); a.Mode != 0o600 {
			t.Errorf("%+v", a)
		}
		info, err := u.FS.FSInfo(u.Ctx, u.Cred, u.Root)
		for _, size := range []uint32{info.ReadMax, info.WriteMax, info.DirPref} {
			if size < 1<<16 && (size != 0 || strings.Contains(t.Name(), "over")) { // 0: the server's default
				t.Errorf("%+v", info)
			}
		}
		if err != nil || info.Properties&(nfs3.HasLinks|nfs3.HasSymlinks|nfs3.CanSetTime) == 0 {
			t.Errorf("%+v, %v", info, err)
		}
		conf, err := u.FS.PathConf(u.Ctx, u.Cred, u.Root)
		if err != nil || conf.NameMax != 255 || !conf.NoTrunc || conf.CaseInsensitive {
			t.Errorf("%+v, %v", conf, err)
		}
		stat, err := u.FS.FSStat(u.Ctx, u.Cred, u.Root)
		if err != nil || stat.TotalBytes == 0 || stat.FreeBytes > stat.TotalBytes || stat.AvailBytes > stat.FreeBytes {
			t.Errorf("%+v, %v", stat, err)
		}
	})
}

// TestLargeData checks data that is longer than the pages of a file system.
func TestLargeData(t *testing.T) {
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		f := u.Create(u.Root, "f", 0o644)
		data := make([]byte, nfs3.MaxData)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		for _, offset := range []uint64{0, 3, 1<<20 + 65535} {
			w, _, err := u.FS.Write(u.Ctx, u.Cred, f.Handle, data, offset, nfs3.Unstable)
			got := make([]byte, len(data))
			n, _, readErr := u.FS.Read(u.Ctx, u.Cred, f.Handle, got, offset)
			if err != nil || readErr != nil || int(w.Count) != len(data) || n != len(data) || !bytes.Equal(got, data) {
				t.Errorf("at %d: %+v, %v, %v", offset, w, err, readErr)
			}
		}
	})
}

// TestPermissions checks what each user may do, by mode, user, group and groups. Only the superuser's server
// can act for several users.
func TestPermissions(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can act for several users")
	}
	onEach(t, func(t *testing.T, u *nfs3test.User) {
		alice, bob, carol := u.As(1001, 101), u.As(1002, 102, 101), u.As(1003, 103)
		f := alice.Create(u.Root, "f", 0o640)
		if f.Attr.UID != 1001 || f.Attr.GID != 101 || f.Attr.Mode != 0o640 {
			t.Fatalf("alice's file has %+v", f.Attr)
		}
		alice.Write(f.Handle, 0, "hers")
		if got := bob.Read(f.Handle, 0, 9); got != "hers" { // by his second group
			t.Errorf("%q", got)
		}
		_, _, err := bob.FS.Write(u.Ctx, bob.Cred, f.Handle, []byte("x"), 0, nfs3.Unstable)
		u.Want("bob writes", err, nfs3.ErrAcces)
		_, _, err = carol.FS.Read(u.Ctx, carol.Cred, f.Handle, make([]byte, 9), 0)
		u.Want("carol reads", err, nfs3.ErrAcces)
		all := nfs3.AccessRead | nfs3.AccessLookup | nfs3.AccessModify | nfs3.AccessExtend | nfs3.AccessDelete | nfs3.AccessExecute
		for who, want := range map[*nfs3test.User]nfs3.Access{alice: nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend, bob: nfs3.AccessRead, carol: 0, u: nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend} {
			if got, err := u.FS.Access(u.Ctx, who.Cred, f.Handle, all); err != nil || got != want {
				t.Errorf("user %d has %x, want %x: %v", who.Cred.UID, got, want, err)
			}
		}
		u.Want("bob chmods", bob.SetAttr(f.Handle, nfs3test.Mode(0o777)), nfs3.ErrPerm)
		u.Want("bob sets times", bob.SetAttr(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ClientTime}), nfs3.ErrPerm)
		u.Want("bob touches", bob.SetAttr(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ServerTime}), nfs3.ErrAcces)
		u.Want("alice gives it away", alice.SetAttr(f.Handle, nfs3.SetAttr{UID: new(uint32(1002))}), nfs3.ErrPerm)
		u.Want("alice gives it to a group that is not hers", alice.SetAttr(f.Handle, nfs3.SetAttr{GID: new(uint32(103))}), nfs3.ErrPerm)
		alice.Must(alice.SetAttr(f.Handle, nfs3test.Mode(0o400)))
		alice.Write(f.Handle, 0, "HERS") // as with a file opened before
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Mode: new(uint32(0o4755))}))
		alice.Write(f.Handle, 0, "hers")
		if a := u.GetAttr(f.Handle); a.Mode != 0o755 {
			t.Errorf("what alice has written is still set-user-id: %o", a.Mode)
		}
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{Mode: new(uint32(0o6755))}))
		u.Must(u.SetAttr(f.Handle, nfs3.SetAttr{UID: new(uint32(1002)), GID: new(uint32(102))}))
		if a := u.GetAttr(f.Handle); a.UID != 1002 || a.GID != 102 || a.Mode != 0o755 {
			t.Errorf("given to bob it has %+v", a)
		}

		home := alice.Mkdir(u.Root, "home", 0o750)
		alice.Create(home.Handle, "x", 0o644)
		bob.Lookup(home.Handle, "x")
		_, _, err = bob.FS.Create(u.Ctx, bob.Cred, home.Handle, "y", &nfs3.CreateHow{})
		u.Want("bob creates", err, nfs3.ErrAcces)
		_, err = bob.FS.Remove(u.Ctx, bob.Cred, home.Handle, "x")
		u.Want("bob removes", err, nfs3.ErrAcces)
		_, err = carol.FS.Lookup(u.Ctx, carol.Cred, home.Handle, "x")
		u.Want("carol looks up", err, nfs3.ErrAcces)
		_, err = carol.FS.ReadDir(u.Ctx, carol.Cred, home.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.Want("carol lists", err, nfs3.ErrAcces)

		tmp := u.Mkdir(u.Root, "tmp", 0o1777)
		alice.Create(tmp.Handle, "hers", 0o666)
		_, err = bob.FS.Remove(u.Ctx, bob.Cred, tmp.Handle, "hers")
		u.Want("bob removes from a sticky directory", err, nfs3.ErrPerm, nfs3.ErrAcces)
		_, _, err = bob.FS.Rename(u.Ctx, bob.Cred, tmp.Handle, "hers", tmp.Handle, "his")
		u.Want("bob renames in a sticky directory", err, nfs3.ErrPerm, nfs3.ErrAcces)
		_, err = alice.FS.Remove(u.Ctx, alice.Cred, tmp.Handle, "hers")
		u.Must(err)

		team := u.Mkdir(u.Root, "team", 0o777)
		u.Must(u.SetAttr(team.Handle, nfs3.SetAttr{GID: new(uint32(200)), Mode: new(uint32(0o2777))}))
		if o := carol.Create(team.Handle, "f", 0o644); o.Attr.GID != 200 || o.Attr.UID != 1003 {
			t.Errorf("in a directory with set-group-id a file has %+v", o.Attr)
		}
		if o := carol.Mkdir(team.Handle, "d", 0o755); o.Attr.GID != 200 || o.Attr.Mode != 0o2755 {
			t.Errorf("in a directory with set-group-id a directory has %+v", o.Attr)
		}
		_, _, err = alice.FS.Mknod(u.Ctx, alice.Cred, u.Root, "dev", &nfs3.NodeSpec{Type: nfs3.TypeChar, Major: 1, Minor: 3})
		u.Want("alice makes a device", err, nfs3.ErrPerm)
		_, _, err = alice.FS.Create(u.Ctx, alice.Cred, u.Root, "forged", &nfs3.CreateHow{Set: nfs3.SetAttr{UID: new(uint32(0))}})
		u.Want("alice makes a file of root's", err, nfs3.ErrPerm)
		if _, err := u.FS.Lookup(u.Ctx, u.Cred, u.Root, "forged"); !errors.Is(err, nfs3.ErrNoEnt) && nfs3.StatusOf(err) != nfs3.ErrNoEnt {
			t.Errorf("it is there: %v", err)
		}
	})
}
