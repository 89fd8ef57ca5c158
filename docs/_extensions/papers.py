"""The papers that registries name as sources: an entry here adds title, place and address to the page."""

PAPERS = {
    "Schölkopf, Smola & Müller 1998": (
        "B. Schölkopf, A. Smola and K.-R. Müller. Nonlinear component analysis as a kernel eigenvalue problem. *Neural Computation* 10(5),"
        " 1299–1319, 1998.",
        "https://doi.org/10.1162/089976698300017467",
    ),
    "Chen, Epperly, Tropp & Webber 2023": (
        "Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber. Randomly pivoted Cholesky: practical approximation of a kernel matrix with few"
        " entry evaluations. *Communications on Pure and Applied Mathematics* 78(5), 995–1041, 2025.",
        "https://doi.org/10.1002/cpa.22234",
    ),
    "Wang & Tanaka 2019": (
        "D. Wang and T. Tanaka. Kernel principal component analysis allowing sparse representation and sample selection. *ECTI Transactions on"
        " Computer and Information Technology* 13(1), 2019.",
        "https://ph01.tci-thaijo.org/index.php/ecticit/article/view/187506",
    ),
    "Das, Golatkar & Awate 2018": (
        "R. Das, A. Golatkar and S. P. Awate. Sparse kernel PCA for outlier detection. *IEEE ICMLA*, 2018. arXiv:1809.02497.",
        "https://arxiv.org/abs/1809.02497",
    ),
    "Zhang, Wang & Ma 2010": (
        "R. Zhang, W. Wang and Y. Ma. Approximations of the standard principal components analysis and kernel PCA. *Expert Systems with"
        " Applications* 37(9), 2010.",
        "https://doi.org/10.1016/j.eswa.2010.02.133",
    ),
    "Tipping 2001": (
        "M. E. Tipping. Sparse kernel principal component analysis. *Advances in Neural Information Processing Systems* 13, 2001.",
        "https://papers.nips.cc/paper/2000/hash/bf201d5407a6509fa536afc4b380577e-Abstract.html",
    ),
    "Li & Gao 2011": (
        "J.-B. Li and H. Gao. Sparse data-dependent kernel principal component analysis based on least squares support vector machine for"
        " feature extraction and recognition. *Neural Computing and Applications*, 2011.",
        None,
    ),
    "Amari & Wu 1999": (
        "S. Amari and S. Wu. Improving support vector machine classifiers by modifying kernel functions. *Neural Networks* 12(6), 783–789,"
        " 1999.",
        "https://doi.org/10.1016/S0893-6080(99)00032-5",
    ),
}


def cited(source):
    """The papers that a source names, as items of a list."""
    found = [(text, address) for name, (text, address) in PAPERS.items() if name in (source or "")]
    return [f"- {text} <{address}>" if address else f"- {text}" for text, address in found]
