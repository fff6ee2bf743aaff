"""One archive of a study, and its verification: `weir pack STUDY`, `weir verify ARCHIVE`.

- `build` collects the files of an archive and writes it; `archive` is the format: a tar with checksums
- `numbers` computes every number of results, figures and claims from raw rows; `build` keeps and `verify`
  compares them
- `crate` describes the archive as RO-Crate, `croissant` its tables; `citation` reads authors, licence and
DOI;
  `methods` writes the text of a paper's section
- `environment` records program versions, and copies the analysis into the archive
- `checklist` judges an archive by the badges of artifact evaluation
"""
