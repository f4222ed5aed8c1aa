package nfs3

// read answers READ. The FS reads into memory from which the transport sends.
func (o *operation) read() error {
	var a ReadArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	data := o.call.Buffer(int(min(a.Count, MaxData)))
	n, eof, err := o.fs.Read(o.ctx, o.cred, a.File, data, a.Offset)
	o.counters.read.Add(uint64(n))
	o.served.moved(n)
	return o.reply(&ReadResult{o.status(err), o.post(a.File), eof, data[:n]})
}

// write answers WRITE. The FS writes from the message, or from the memory into which the data was
// fetched.
func (o *operation) write() error {
	var a WriteArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	var r WriteResult
	err := o.writable()
	if err == nil {
		r.Written, r.WCC, err = o.fs.Write(o.ctx, o.cred, a.File, a.Data, a.Offset, a.Stable)
	}
	r.Status = o.status(err)
	o.counters.written.Add(uint64(r.Written.Count))
	o.served.moved(int(r.Written.Count))
	o.complete(&r.WCC, a.File)
	return o.reply(&r)
}

func (o *operation) commit() error {
	var a CommitArgs
	if err := o.decode(&a); err != nil {
		return err
	}
	var r CommitResult
	var err error
	r.Verifier, r.WCC, err = o.fs.Commit(o.ctx, o.cred, a.File, a.Offset, a.Count)
	r.Status = o.status(err)
	o.complete(&r.WCC, a.File)
	return o.reply(&r)
}
