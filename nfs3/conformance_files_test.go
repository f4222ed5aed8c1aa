package nfs3_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

// TestFiles checks data of files: writes, reads, holes, ends, sizes.
func TestFiles(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "file", 0o644)
		if f.Attr.Size != 0 || f.Attr.Type != nfs3.TypeRegular || f.Attr.Mode != 0o644 || f.Attr.Links != 1 || f.Attr.FileID == 0 {
			t.Errorf("a new file has %+v", f.Attr)
		}
		u.write(f.Handle, 5, "hello")
		if got := u.read(f.Handle, 0, 100); got != "\x00\x00\x00\x00\x00hello" {
			t.Errorf("%q", got)
		}
		u.write(f.Handle, 200_000, "far")
		if got := u.read(f.Handle, 199_998, 100); got != "\x00\x00far" || u.attr(f.Handle).Size != 200_003 {
			t.Errorf("%q of %d", got, u.attr(f.Handle).Size)
		}
		u.must(u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(7))}))
		u.must(u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(12))}))
		if got := u.read(f.Handle, 0, 100); got != "\x00\x00\x00\x00\x00he\x00\x00\x00\x00\x00" {
			t.Errorf("cut and longer again it is %q", got)
		}
		for _, c := range []struct {
			offset uint64
			n      int
			got    int
			eof    bool
		}{{0, 11, 11, false}, {0, 12, 12, true}, {0, 13, 12, true}, {11, 1, 1, true}, {12, 1, 0, true}, {1 << 40, 1, 0, true}, {1<<63 - 1, 9, 0, true}, {1<<64 - 1, 9, 0, true}} {
			n, eof, err := u.fs.Read(u.ctx, u.cred, f.Handle, make([]byte, c.n), c.offset)
			if err != nil || n != c.got || eof != c.eof {
				t.Errorf("read %d at %d: %d, %v, %v", c.n, c.offset, n, eof, err)
			}
		}
		_, _, err := u.fs.Write(u.ctx, u.cred, f.Handle, []byte("x"), 1<<64-1, nfs3.Unstable)
		u.want("a write at the end of all offsets", err, nfs3.ErrFBig)
		u.want("a size beyond all", u.set(f.Handle, nfs3.SetAttr{Size: ptr(uint64(1<<64 - 1))}), nfs3.ErrFBig)
		for stable := range nfs3.FileSync + 1 {
			w, wcc, err := u.fs.Write(u.ctx, u.cred, f.Handle, []byte("x"), 1, stable)
			if err != nil || w.Stable < stable || w.Count != 1 || wcc.After.Present && wcc.After.Attr.Size != 12 {
				t.Errorf("%v: %+v, %+v, %v", stable, w, wcc, err)
			}
			verifier, _, err := u.fs.Commit(u.ctx, u.cred, f.Handle, 0, 0)
			if err != nil || verifier != w.Verifier {
				t.Errorf("commit: verifier %x, written by %x, %v", verifier, w.Verifier, err)
			}
		}
		locked := u.create(u.root, "locked", 0o444)
		u.write(locked.Handle, 0, "as after an open") // cp -p and git do so
		if a := u.attr(locked.Handle); a.Mode != 0o444 || a.Size != 16 {
			t.Errorf("%+v", a)
		}
		d := u.mkdir(u.root, "dir", 0o755)
		_, _, err = u.fs.Read(u.ctx, u.cred, d.Handle, make([]byte, 9), 0)
		u.want("read of a directory", err, nfs3.ErrIsDir)
		_, _, err = u.fs.Write(u.ctx, u.cred, d.Handle, make([]byte, 9), 0, nfs3.Unstable)
		u.want("write of a directory", err, nfs3.ErrIsDir)
		u.want("size of a directory", u.set(d.Handle, nfs3.SetAttr{Size: ptr(uint64(0))}), nfs3.ErrIsDir, nfs3.ErrInval)
		_, _, err = u.fs.Commit(u.ctx, u.cred, d.Handle, 0, 0)
		u.want("commit of a directory", err, nfs3.ErrIsDir, nfs3.ErrInval)
	})
}

// TestCreate checks the three modes of CREATE, and that an exclusive one can be sent again.
func TestCreate(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		create := func(name string, how nfs3.CreateHow) (nfs3.Object, error) {
			o, _, err := u.fs.Create(u.ctx, u.cred, u.root, name, &how)
			return o, err
		}
		a, err := create("a", nfs3.CreateHow{Set: mode(0o640)})
		u.must(err)
		u.write(a.Handle, 0, "data")
		b, err := create("a", nfs3.CreateHow{Set: mode(0o600)})
		if err != nil || b.Handle != a.Handle || b.Attr.Size != 4 || b.Attr.Mode != 0o640 {
			t.Errorf("unchecked again: %+v, %v", b, err)
		}
		b, err = create("a", nfs3.CreateHow{Set: nfs3.SetAttr{Size: ptr(uint64(0))}})
		if err != nil || b.Handle != a.Handle || b.Attr.Size != 0 {
			t.Errorf("unchecked with a size: %+v, %v", b, err)
		}
		_, err = create("a", nfs3.CreateHow{Mode: nfs3.Guarded})
		u.want("guarded again", err, nfs3.ErrExist)
		x, err := create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345678})
		u.must(err)
		again, err := create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345678})
		if err != nil || again.Handle != x.Handle {
			t.Errorf("exclusive, sent again: %+v, %v", again, err)
		}
		_, err = create("x", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 0x8765432112345679})
		u.want("exclusive of another", err, nfs3.ErrExist)
		_, err = create("a", nfs3.CreateHow{Mode: nfs3.Exclusive, Verifier: 1})
		u.want("exclusive of a file that is there", err, nfs3.ErrExist)
		u.must(u.set(x.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o600)), SetAtime: nfs3.ServerTime, SetMtime: nfs3.ServerTime}))
		u.mkdir(u.root, "d", 0o755)
		for _, how := range []nfs3.CreateMode{nfs3.Unchecked, nfs3.Guarded, nfs3.Exclusive} {
			_, err := create("d", nfs3.CreateHow{Mode: how, Verifier: 3})
			u.want("create over a directory", err, nfs3.ErrExist)
		}
		_, _, err = u.fs.Create(u.ctx, u.cred, a.Handle, "x", &nfs3.CreateHow{})
		u.want("create in a file", err, nfs3.ErrNotDir)
	})
}

// TestAttributes checks SETATTR: modes, times, the guard.
func TestAttributes(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "f", 0o644)
		u.must(u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o4711)), SetAtime: nfs3.ClientTime, Atime: nfs3.Time{Seconds: 5, Nanoseconds: 6}, SetMtime: nfs3.ClientTime, Mtime: nfs3.Time{Seconds: 7, Nanoseconds: 8}}))
		a := u.attr(f.Handle)
		if a.Mode != 0o4711 || a.Atime != (nfs3.Time{Seconds: 5, Nanoseconds: 6}) || a.Mtime != (nfs3.Time{Seconds: 7, Nanoseconds: 8}) || a.Ctime.Seconds < 1e9 {
			t.Errorf("%+v", a)
		}
		u.must(u.set(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ServerTime}))
		if b := u.attr(f.Handle); b.Mtime.Seconds < 1e9 || b.Atime != a.Atime {
			t.Errorf("%+v", b)
		}
		old := u.attr(f.Handle).Ctime
		_, err := u.fs.SetAttr(u.ctx, u.cred, f.Handle, &nfs3.SetAttr{Mode: ptr(uint32(0o600))}, &nfs3.Time{Seconds: old.Seconds - 1})
		u.want("another guard", err, nfs3.ErrNotSync)
		_, err = u.fs.SetAttr(u.ctx, u.cred, f.Handle, &nfs3.SetAttr{Mode: ptr(uint32(0o600))}, &old)
		u.must(err)
		if a := u.attr(f.Handle); a.Mode != 0o600 {
			t.Errorf("%+v", a)
		}
		info, err := u.fs.FSInfo(u.ctx, u.cred, u.root)
		if err != nil || info.ReadMax < 1<<16 || info.WriteMax < 1<<16 || info.DirPref < 4096 || info.Properties&(nfs3.HasLinks|nfs3.HasSymlinks|nfs3.CanSetTime) == 0 {
			t.Errorf("%+v, %v", info, err)
		}
		conf, err := u.fs.PathConf(u.ctx, u.cred, u.root)
		if err != nil || conf.NameMax != 255 || !conf.NoTrunc || conf.CaseInsensitive {
			t.Errorf("%+v, %v", conf, err)
		}
		stat, err := u.fs.FSStat(u.ctx, u.cred, u.root)
		if err != nil || stat.TotalBytes == 0 || stat.FreeBytes > stat.TotalBytes || stat.AvailBytes > stat.FreeBytes {
			t.Errorf("%+v, %v", stat, err)
		}
	})
}

// TestLargeData checks data that is longer than the pages of a file system.
func TestLargeData(t *testing.T) {
	onEach(t, func(t *testing.T, u *user) {
		f := u.create(u.root, "f", 0o644)
		data := make([]byte, nfs3.MaxData)
		for i := range data {
			data[i] = byte(i * 7 >> 3)
		}
		for _, offset := range []uint64{0, 3, 1<<20 + 65535} {
			w, _, err := u.fs.Write(u.ctx, u.cred, f.Handle, data, offset, nfs3.Unstable)
			got := make([]byte, len(data))
			n, _, readErr := u.fs.Read(u.ctx, u.cred, f.Handle, got, offset)
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
	onEach(t, func(t *testing.T, u *user) {
		alice, bob, carol := u.as(1001, 101), u.as(1002, 102, 101), u.as(1003, 103)
		f := alice.create(u.root, "f", 0o640)
		if f.Attr.UID != 1001 || f.Attr.GID != 101 || f.Attr.Mode != 0o640 {
			t.Fatalf("alice's file has %+v", f.Attr)
		}
		alice.write(f.Handle, 0, "hers")
		if got := bob.read(f.Handle, 0, 9); got != "hers" { // by his second group
			t.Errorf("%q", got)
		}
		_, _, err := bob.fs.Write(u.ctx, bob.cred, f.Handle, []byte("x"), 0, nfs3.Unstable)
		u.want("bob writes", err, nfs3.ErrAcces)
		_, _, err = carol.fs.Read(u.ctx, carol.cred, f.Handle, make([]byte, 9), 0)
		u.want("carol reads", err, nfs3.ErrAcces)
		all := nfs3.AccessRead | nfs3.AccessLookup | nfs3.AccessModify | nfs3.AccessExtend | nfs3.AccessDelete | nfs3.AccessExecute
		for who, want := range map[*user]nfs3.Access{alice: nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend, bob: nfs3.AccessRead, carol: 0, u: nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend} {
			if got, err := u.fs.Access(u.ctx, who.cred, f.Handle, all); err != nil || got != want {
				t.Errorf("user %d has %x, want %x: %v", who.cred.UID, got, want, err)
			}
		}
		u.want("bob chmods", bob.set(f.Handle, mode(0o777)), nfs3.ErrPerm)
		u.want("bob sets times", bob.set(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ClientTime}), nfs3.ErrPerm)
		u.want("bob touches", bob.set(f.Handle, nfs3.SetAttr{SetMtime: nfs3.ServerTime}), nfs3.ErrAcces)
		u.want("alice gives it away", alice.set(f.Handle, nfs3.SetAttr{UID: ptr(uint32(1002))}), nfs3.ErrPerm)
		u.want("alice gives it to a group that is not hers", alice.set(f.Handle, nfs3.SetAttr{GID: ptr(uint32(103))}), nfs3.ErrPerm)
		alice.must(alice.set(f.Handle, mode(0o400)))
		alice.write(f.Handle, 0, "HERS") // as with a file opened before
		u.must(u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o4755))}))
		alice.write(f.Handle, 0, "hers")
		if a := u.attr(f.Handle); a.Mode != 0o755 {
			t.Errorf("what alice has written is still set-user-id: %o", a.Mode)
		}
		u.must(u.set(f.Handle, nfs3.SetAttr{Mode: ptr(uint32(0o6755))}))
		u.must(u.set(f.Handle, nfs3.SetAttr{UID: ptr(uint32(1002)), GID: ptr(uint32(102))}))
		if a := u.attr(f.Handle); a.UID != 1002 || a.GID != 102 || a.Mode != 0o755 {
			t.Errorf("given to bob it has %+v", a)
		}

		home := alice.mkdir(u.root, "home", 0o750)
		alice.create(home.Handle, "x", 0o644)
		bob.lookup(home.Handle, "x")
		_, _, err = bob.fs.Create(u.ctx, bob.cred, home.Handle, "y", &nfs3.CreateHow{})
		u.want("bob creates", err, nfs3.ErrAcces)
		_, err = bob.fs.Remove(u.ctx, bob.cred, home.Handle, "x")
		u.want("bob removes", err, nfs3.ErrAcces)
		_, err = carol.fs.Lookup(u.ctx, carol.cred, home.Handle, "x")
		u.want("carol looks up", err, nfs3.ErrAcces)
		_, err = carol.fs.ReadDir(u.ctx, carol.cred, home.Handle, nfs3.DirPosition{}, false, func(*nfs3.DirEntry) bool { return true })
		u.want("carol lists", err, nfs3.ErrAcces)

		tmp := u.mkdir(u.root, "tmp", 0o1777)
		alice.create(tmp.Handle, "hers", 0o666)
		_, err = bob.fs.Remove(u.ctx, bob.cred, tmp.Handle, "hers")
		u.want("bob removes from a sticky directory", err, nfs3.ErrPerm, nfs3.ErrAcces)
		_, _, err = bob.fs.Rename(u.ctx, bob.cred, tmp.Handle, "hers", tmp.Handle, "his")
		u.want("bob renames in a sticky directory", err, nfs3.ErrPerm, nfs3.ErrAcces)
		_, err = alice.fs.Remove(u.ctx, alice.cred, tmp.Handle, "hers")
		u.must(err)

		team := u.mkdir(u.root, "team", 0o777)
		u.must(u.set(team.Handle, nfs3.SetAttr{GID: ptr(uint32(200)), Mode: ptr(uint32(0o2777))}))
		if o := carol.create(team.Handle, "f", 0o644); o.Attr.GID != 200 || o.Attr.UID != 1003 {
			t.Errorf("in a directory with set-group-id a file has %+v", o.Attr)
		}
		if o := carol.mkdir(team.Handle, "d", 0o755); o.Attr.GID != 200 || o.Attr.Mode != 0o2755 {
			t.Errorf("in a directory with set-group-id a directory has %+v", o.Attr)
		}
		_, _, err = alice.fs.Mknod(u.ctx, alice.cred, u.root, "dev", &nfs3.NodeSpec{Type: nfs3.TypeChar, Major: 1, Minor: 3})
		u.want("alice makes a device", err, nfs3.ErrPerm)
		_, _, err = alice.fs.Create(u.ctx, alice.cred, u.root, "forged", &nfs3.CreateHow{Set: nfs3.SetAttr{UID: ptr(uint32(0))}})
		u.want("alice makes a file of root's", err, nfs3.ErrPerm)
		if _, err := u.fs.Lookup(u.ctx, u.cred, u.root, "forged"); !errors.Is(err, nfs3.ErrNoEnt) && nfs3.StatusOf(err) != nfs3.ErrNoEnt {
			t.Errorf("it is there: %v", err)
		}
	})
}
