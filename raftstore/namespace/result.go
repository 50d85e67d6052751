package namespace

import "lockfs/raftstore/storepb"

func ok() *storepb.Result { return &storepb.Result{} }

func fail(code storepb.Code) *storepb.Result { return &storepb.Result{Code: code} }
