package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// debian is a package for Debian and what comes from it. The program is static, so it depends
// on nothing.
func (p *product) debian() (name string, data []byte, err error) {
	version := debianVersion(p.version)
	files, err := p.installed(version)
	if err != nil {
		return "", nil, err
	}
	var sums strings.Builder
	kept, dirs := 0, make(map[string]bool) // in units of 1024 bytes, as Debian counts
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
		kept += (len(f.data) + 1023) / 1024
		for dir := path.Dir(f.name); !dirs[dir]; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	control := fmt.Sprintf(`Package: %s
Version: %s
Architecture: %s
Maintainer: %s
Installed-Size: %d
Section: net
Priority: optional
Homepage: https://%s
Description: one-sided writes over plain Ethernet and UDP
 dgrdmacat writes straight into memory that a program on another machine
 offers, moves files, measures, and reads captures. It speaks OpenCPI's
 Datagram RDMA protocol over UDP and Ethernet, and iWARP, the RDMA of
 standards, over TCP. It needs no special network cards.
`, program, version, p.arch, p.by, kept+len(dirs), module)
	data, err = p.members(
		[]file{{"control", 0o644, []byte(control)}, {"md5sums", 0o644, []byte(sums.String())}},
		files)
	return fmt.Sprintf("%s_%s_%s.deb", program, version, p.arch), data, err
}

// debianVersion is what sorts in Debian as a version of Go's does among modules: what is
// before a release comes before it.
func debianVersion(version string) string {
	before, after, is := strings.Cut(version, "-")
	if !is {
		return version + "-1"
	}
	return before + "~" + strings.ReplaceAll(after, "-", ".") + "-1"
}

// overrides is what lintian is not to say: a static program runs on every Debian, and no bug
// asks Debian for this package.
const overrides = program + ": statically-linked-binary\n" + program + ": initial-upload-closes-no-bugs\n"

// installed are the package's files, sorted, where Debian and its shells look for them.
func (p *product) installed(version string) (all []file, err error) {
	doc := "usr/share/doc/" + program
	put := func(dir string, f file) { all = append(all, file{path.Join(dir, f.name), f.mode, f.data}) }
	put("usr/bin", p.binary)
	put("usr/share/lintian/overrides", file{program, 0o644, []byte(overrides)})
	for shell, dir := range map[string]string{"bash": "bash-completion/completions", "zsh": "zsh/vendor-completions", "fish": "fish/vendor_completions.d"} {
		put("usr/share/"+dir, p.completions[shell])
	}
	small := map[string][]file{
		"usr/share/man/man1": p.manual,
		doc: {{"changelog.Debian", 0o644, fmt.Appendf(nil, "%s (%s) unstable; urgency=medium\n\n  * Version %s.\n  * What has changed is in changelog.gz.\n\n -- %s  %s\n",
			program, version, p.version, p.by, p.at.Format(time.RFC1123Z))}},
	}
	for _, f := range p.pages {
		if f.name == "CHANGELOG.md" {
			small[doc] = append(small[doc], file{"changelog", f.mode, f.data})
		} else {
			put(doc, f)
		}
	}
	for dir, files := range small {
		for _, f := range files {
			f, err := compressed(f)
			if err != nil {
				return nil, err
			}
			put(dir, f)
		}
	}
	put(doc, file{"copyright", 0o644, []byte(p.copyright())})
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// copyright has all licences, but for the text that every Debian has.
func (p *product) copyright() string {
	const apache = "Apache License\n                           Version 2.0, January 2004\n"
	var b strings.Builder
	fmt.Fprintf(&b, "%s comes from https://%s.\nIt is linked with the modules that are named below, and with Go's own library.\n", program, module)
	for _, f := range p.licences {
		text := string(f.data)
		if strings.Contains(text, apache) {
			text = "The Apache License, version 2.0: /usr/share/common-licenses/Apache-2.0\n"
		}
		fmt.Fprintf(&b, "\n%s:\n\n%s\n", f.name, strings.TrimRight(text, "\n"))
	}
	return b.String()
}

// members puts together what dpkg reads: an archive of ar with three members.
func (p *product) members(control, data []file) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	add := func(name string, data []byte) {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, p.at.Unix(), 0, 0, "100644", len(data))
		b.Write(data)
		if len(data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	add("debian-binary", []byte("2.0\n"))
	for _, m := range []struct {
		name  string
		files []file
	}{{"control.tar.gz", control}, {"data.tar.gz", data}} {
		packed, err := tarball("./", m.files, p.at)
		if err != nil {
			return nil, err
		}
		add(m.name, packed)
	}
	return b.Bytes(), nil
}
